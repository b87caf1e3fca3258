"""Chapter 6: pipelines, as planned and as measured."""
