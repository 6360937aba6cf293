"""The CEDR language: text to syntax tree (`parse`), back to text (`show`), and to streams (`compile`, `query`)."""
