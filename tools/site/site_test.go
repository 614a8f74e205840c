// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTheDocumentsOfTheRepository builds the real site: every link leads somewhere, every page that the index lists is
// in the navigation of every page, and nothing is loaded from another host.
func TestTheDocumentsOfTheRepository(t *testing.T) {
	files, err := build(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range check(files) {
		t.Error(b)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("found %d documents, %v", len(pages), err)
	}
	listed := elements(files["docs/gangs.html"])
	for _, p := range pages {
		url := strings.TrimSuffix(filepath.Base(p), ".md") + ".html"
		if url == "README.html" {
			url = "index.html"
		}
		if files["docs/"+url] == nil {
			t.Errorf("%s has no page", p)
		}
		found := false
		for _, e := range listed {
			found = found || e.name == "a" && e.attributes["href"] == url
		}
		if !found {
			t.Errorf("docs/gangs.html does not lead to %s", url)
		}
	}
}

// repository is a small one that is in order.
func repository() fstest.MapFS {
	return fstest.MapFS{
		"README.md": {Data: []byte("# Home\n\n[b](docs/b.md#two-words) [dir](examples) ![plot](docs/p.svg)\n")},
		"docs/README.md": {Data: []byte("# Index\n\n## Use it\n\n| task | page |\n|---|---|\n| b | [b](b.md) |\n\n" +
			"[not in a table](../examples/a.yaml)\n")},
		"docs/b.md": {Data: []byte("# B\n\n## Two words!\n\ntext `code`\n\n## Two words\n\n" +
			"| <a id=\"row\"></a>x |\n|---|\n| [r](#row) |\n")},
		"docs/p.svg":      {Data: []byte("<svg/>")},
		"examples/a.yaml": {Data: []byte("a: <b>\n")},
	}
}

func TestEveryLinkBecomesAPage(t *testing.T) {
	files, err := build(repository())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range check(files) {
		t.Error(b)
	}
	for url, want := range map[string]string{ // order: each alone
		"index.html":           `href="docs/b.html#two-words"`,
		"docs/index.html":      `href="../examples/a.yaml.html"`,
		"docs/b.html":          `<h2 id="two-words-1">`,
		"examples/index.html":  `<a href="a.yaml.html">a.yaml</a>`,
		"examples/a.yaml.html": "a: &lt;b&gt;",
		"docs/p.svg":           "<svg/>",
		"search.js":            `{"u":"docs/b.html","t":"B","p":[["b","B",""],["two-words","Two words!","text code"]`,
		"site.css":             "--back",
	} {
		if !bytes.Contains(files[url], []byte(want)) {
			t.Errorf("%s does not contain %s:\n%s", url, want, files[url])
		}
	}
	nav := string(files["examples/a.yaml.html"])
	if !strings.Contains(nav, `<summary>Use it</summary>`) || !strings.Contains(nav, `href="../docs/b.html"`) {
		t.Errorf("the navigation lacks the index's section or page:\n%s", nav)
	}
}

func TestBrokenPagesAreReported(t *testing.T) {
	for text, want := range map[string]string{ // order: each alone
		"[x](gone.md)":                      "docs/b.md: links to gone.md",
		"[x](#gone)":                        "docs/b.html: links to #gone, which has no such anchor",
		"[x](../README.md#gone)":            "docs/b.html: links to ../index.html#gone, which has no such anchor",
		"![x](https://example.org/x.png)":   "docs/b.html: loads https://example.org/x.png",
		"<img src=\"//example.org/x.png\">": "docs/b.html: loads //example.org/x.png",
		"<a id=\"b\"></a>":                  "docs/b.html: the anchor b is there twice",
	} {
		repo := repository()
		repo["docs/b.md"] = &fstest.MapFile{Data: []byte("# B\n\n## Two words\n\n" + text + "\n")}
		files, err := build(repo)
		var found []string
		if err != nil {
			found = append(found, err.Error())
		} else {
			found = check(files)
		}
		if all := strings.Join(found, "\n"); !strings.Contains(all, want) {
			t.Errorf("%s: got %q, want %q", text, all, want)
		}
	}
}
