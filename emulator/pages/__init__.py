"""Views of a trace: the page of one trace (`html`), the live page (`dashboard`) and a Perfetto export (`perfetto`)."""
