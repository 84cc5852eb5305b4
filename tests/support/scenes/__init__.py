"""Groups brought into a situation, step by step."""
