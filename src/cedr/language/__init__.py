"""The CEDR language: syntax trees (`cedr.syntax`) compiled to streams (`compile`, `query`)."""
