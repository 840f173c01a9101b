"""The pages of the site, with the templates that they fill."""
