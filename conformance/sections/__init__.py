"""The clauses, one module per part of the documents; each probe stands under its declaration."""
