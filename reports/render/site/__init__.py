"""The pages of the site, with their templates."""
