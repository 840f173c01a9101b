"""Results files of the harness: recorded as cells end, gathered from earlier runs, judged again."""
