"""What a heap costs where it runs: on this machine (host) and on emulated boards."""
