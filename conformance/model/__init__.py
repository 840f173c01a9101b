"""The records of results files: their fields, their JSON, and the schema that is made of them.

It imports nothing of this project. All but `tables` needs msgspec, which only a controller has.
"""
