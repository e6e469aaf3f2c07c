"""What a replay tells people: who plays, what each cost and missed, the verdict, a page, a configuration."""
