"""What a series of demand holds, which forecaster serves it, what that says, and how good it has been.

`found` describes a series, `candidates` names the forecasters that stand for election, `study` chooses one
and lets it forecast (`said`), `judged` holds that against the past; `words` and `plain` tell it, `picture`
draws it.
"""
