"""What the spec cannot know: workers, a provider, time, crashes and people, written once."""
