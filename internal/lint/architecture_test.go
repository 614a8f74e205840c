// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDiagramIsCurrent: `make architecture` writes the generated section of the page.
func TestTheDiagramIsCurrent(t *testing.T) {
	tree := load(t)
	page, err := os.ReadFile(filepath.Join(tree.Root, filepath.FromSlash(ArchitecturePage)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := WithDiagram(string(page), Diagram(tree))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(page) {
		t.Errorf("%s does not show the packages as they are; run `make architecture`", ArchitecturePage)
	}
}

func TestTheWalkNamesWhatExists(t *testing.T) {
	report(t, Walk(load(t), ArchitecturePage, "CONTRIBUTING.md"))
}

func TestSampleDiagram(t *testing.T) {
	imports := func(name string, of ...string) string {
		src := "// Package p owns " + name + ". More.\npackage p\n"
		for _, pkg := range of {
			src += "import _ \"" + Module + "/" + pkg + "\"\n"
		}
		return src
	}
	got := Diagram(sample(t,
		"core/a/a.go", imports("the first"),
		"core/b/b.go", imports("the second", "core/a"),
		"kube/k.go", imports("the edge", "core/a", "core/b", "kube/inner"),
		"kube/inner/i.go", imports("a part"),
		"internal/x/x.go", imports("tools", "kube")))
	want := "```mermaid\nflowchart TD\n  core/b --> core/a\n  kube --> core/b\n```\n\n| package | owns |\n|---|---|\n" +
		"| `core/a` | the first |\n| `core/b` | the second |\n| `kube` | the edge |\n| `kube/inner` | a part |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	page, err := WithDiagram("x\n"+diagramBegins+"old\n"+diagramEnds+"y\n", got)
	if err != nil || !strings.Contains(page, want) || strings.Contains(page, "old") || !strings.HasSuffix(page, "y\n") {
		t.Errorf("the page is %q, %v", page, err)
	}
	if _, err := WithDiagram("x\n", got); err == nil {
		t.Error("a page without the section is accepted")
	}
}

func TestSampleWalk(t *testing.T) {
	walk := func(text string) []Finding {
		return Walk(sample(t, "docs/w.md", text, "core/a/a.go", "package a\n\ntype T struct{}\n\nfunc (t *T) M() {}\n\nfunc F() {}\n"), "docs/w.md")
	}
	expect(t, walk("`core/a/a.go` `F()`, then `T.M()`; `core/a` and `example.com/x`\n"))
	expect(t, walk("`core/a/b.go`\n"), "docs/w.md:1 names core/a/b.go, which does not exist")
	expect(t, walk("`core/a/a.go`\n`G()`\n"), "docs/w.md:2 names G(), which core/a/a.go does not declare")
	expect(t, walk("`core/a/a.go` `M()` `T.F()`\n"), "names M()", "names T.F()")
	expect(t, walk("`F()`\n"), "which no file named before does not declare")
}
