"""Pictures of a trace: a page for people (`html`), and a file for Perfetto (`perfetto`)."""
