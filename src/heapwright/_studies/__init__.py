"""What is stored of explorations: studies, merged, extended, exported, and their numbers made again."""
