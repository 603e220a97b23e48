"""What may be relied on: faults and exploits committed on heaps, and proofs."""
