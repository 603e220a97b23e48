"""What a heap goes into: one folder a platform, with the C that binds the heap, a test of it, and a page of what to do.

A folder's `platform.toml` lists the platform's requirements on a recipe; the other files are written with the heap.
They are as they would be generated for the prefix `app`, and begin with it where they are C. In `hooks/` lies what
records the heap that a platform has now, in `trace/` what all of these share, in `tracers/` what records programs on
Linux.
"""
