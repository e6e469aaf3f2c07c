"""How the page looks, and the frame that its parts are put into."""

from html import escape

INK, QUIET, GRID = "#22303c", "#5d6d7c", "#e4e9ee"
OWN, DEMAND, FIXED = "#17466e", "#dbe3ea", "#8a97a5"
BAND, OBJECTIVE, GOOD, BAD = "#3a9d6e", "#c8553d", "#2f8a5f", "#b3402a"
OTHERS = ("#e09f3e", "#8e6bbf", "#2a9d8f", "#d1698f", "#4a90c4", "#a0803c", "#6b8f3a", "#c77d4f", "#58627a")
"""Of the peers, in their order."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"

STYLE = f"""
:root {{ --ink: {INK}; --quiet: {QUIET}; --line: {GRID}; --own: {OWN}; --good: {GOOD}; --bad: {BAD} }}
* {{ box-sizing: border-box }}
body {{ margin: 0; background: #f6f8fa; color: var(--ink); font: 15px/1.5 {FONT} }}
main {{ max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px }}
h1 {{ font-size: 25px; line-height: 1.3; margin: 6px 0 10px; text-wrap: balance }}
h2 {{ font-size: 18px; margin: 0 0 4px }}
p {{ margin: 0 0 8px }}
.quiet {{ color: var(--quiet) }}
.small {{ font-size: 13px }}
section {{ background: white; border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin-top: 18px }}
ul {{ margin: 6px 0 0; padding-left: 20px }}
li {{ margin-bottom: 5px }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px;
  margin-top: 18px }}
.tile {{ background: white; border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px }}
.tile b {{ display: block; font-size: 25px; line-height: 1.25; font-weight: 650 }}
.tile .good {{ color: var(--good) }} .tile .bad {{ color: var(--bad) }}
.wide {{ overflow-x: auto; margin: 0 -4px }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; white-space: nowrap;
  font-size: 14px }}
th {{ color: var(--quiet); font-weight: 500; font-size: 13px; text-align: right; vertical-align: bottom }}
td, th {{ padding: 6px 8px; border-bottom: 1px solid var(--line) }}
td {{ text-align: right }}
th:first-child, td:first-child {{ text-align: left; position: sticky; left: 0; background: white }}
tr.own td {{ background: #eef4f9; font-weight: 600 }}
tr:last-child td {{ border-bottom: 0 }}
td.cost {{ min-width: 96px }}
.bar {{ display: block; height: 5px; border-radius: 3px; background: #c3cfd9; margin-top: 3px }}
tr.own .bar {{ background: var(--own) }}
.badge {{ border-radius: 20px; padding: 2px 9px; font-size: 12px; font-weight: 600 }}
.badge.good {{ background: #e3f3ea; color: var(--good) }}
.badge.bad {{ background: #fae9e5; color: var(--bad) }}
.off {{ color: var(--bad) }}
pre {{ background: #f6f8fa; border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px;
  margin: 10px 0; overflow-x: auto; font: 13px/1.55 ui-monospace, Menlo, Consolas, monospace }}
pre .why {{ color: #71808e }}
.pasted {{ position: relative }}
button {{ position: absolute; top: 8px; right: 8px; border: 1px solid #c9d3dc; background: white;
  color: var(--ink); border-radius: 6px; padding: 4px 12px; font: inherit; font-size: 13px; cursor: pointer }}
button:hover {{ background: #eef4f9 }}
.dot {{ display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 7px }}
@media (max-width: 760px) {{ main {{ padding: 16px 10px 40px }} section {{ padding: 14px 12px }}
  h1 {{ font-size: 21px }} }}
"""

SCRIPT = """
function copied(button) {
  const text = document.getElementById('configuration');
  const range = document.createRange();
  range.selectNodeContents(text);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  document.execCommand('copy');
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = 'Copy' }, 2000);
}
"""


def said(text: str) -> str:
    """Return text as HTML; a figure is not torn from its sign."""
    return escape(text).replace(" %", "\u00a0%")


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{parts}
</main>
<script>{script}</script>
</body>
</html>
"""
