"""What an allocator is: pools, their geometry, the rules they follow, canonical form, and the policy the core runs."""
