"""Where chains start: searches over allocations of tokens to topics, what they found, its worth."""
