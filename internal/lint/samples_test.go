// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sample makes a repository of files, given as path, source, path, source.
func sample(t *testing.T, files ...string) *Tree {
	t.Helper()
	tree := NewTree()
	for i := 0; i < len(files); i += 2 {
		if err := tree.Add(files[i], files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// expect compares findings with the texts that each of them must hold, in order of their places.
func expect(t *testing.T, found []Finding, want ...string) {
	t.Helper()
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Where+a.What, b.Where+b.What) })
	for i, f := range found {
		if f.Why == "" {
			t.Errorf("finding without a reason: %v", f)
		}
		if i < len(want) && !strings.Contains(f.Where+" "+f.What, want[i]) {
			t.Errorf("finding %d is %q, expected to hold %q", i, f.Where+" "+f.What, want[i])
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d findings, expected %d: %v", len(found), len(want), found)
	}
}

func TestSampleImportGraph(t *testing.T) {
	const upward = "package queue\nimport _ \"" + Module + "/core/engine\"\n"
	const sibling = "package queue\nimport _ \"" + Module + "/core/place\"\n"
	const down = "package queue\nimport (\n\"fmt\"\n_ \"" + Module + "/core/cluster\"\n)\nvar _ = fmt.Sprint\n"
	expect(t, ImportGraph(sample(t, "core/queue/a.go", upward)), "core/queue imports core/engine")
	expect(t, ImportGraph(sample(t, "core/queue/a.go", sibling)), "core/queue imports core/place")
	expect(t, ImportGraph(sample(t, "core/queue/a.go", down)))
	expect(t, ImportGraph(sample(t, "core/queue/a_test.go", upward)))
	expect(t, ImportGraph(sample(t, "core/novel/a.go", "package novel\n", "core/novel/b.go", "package novel\n")),
		"core/novel this package is not in the import graph")
	expect(t, ImportGraph(sample(t, "app/a.go", "package app\nimport _ \""+Module+"/conformance/gen\"\n")),
		"app imports conformance/gen")
	expect(t, ImportGraph(sample(t, "localcluster/pki/a.go", "package pki\nimport _ \""+Module+"/record\"\n")),
		"localcluster/pki imports record")
	expect(t, ImportGraph(sample(t, "localcluster/main.go", "package main\nimport _ \""+Module+"/localcluster/pki\"\n")))
}

// TestGraphHasNoCycle follows every arrow downwards; a package that reaches itself would not compile, and the table
// would promise what Go refuses.
func TestGraphHasNoCycle(t *testing.T) {
	for pkg := range graph {
		if strings.HasSuffix(pkg, "/...") {
			continue // a tree may use itself
		}
		seen := map[string]bool{}
		todo := slices.Clone(graph[pkg].may)
		for len(todo) > 0 {
			next := todo[0]
			todo = todo[1:]
			if next == pkg {
				t.Errorf("%s may reach itself", pkg)
				break
			}
			if _, known := graph[next]; !known {
				t.Errorf("%s may import %s, which is not in the graph", pkg, next)
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, graph[next].may...)
			}
		}
	}
}

func TestSampleClosure(t *testing.T) {
	deps := []Dep{
		{ImportPath: Module + "/app", Imports: []string{"k8s.io/kubernetes/pkg/scheduler", "k8s.io/api/core/v1"}},
		{ImportPath: "k8s.io/kubernetes/pkg/scheduler", Imports: []string{"k8s.io/kubernetes/pkg/features"}},
		{ImportPath: "k8s.io/kubernetes/pkg/features"},
		{ImportPath: "k8s.io/api/core/v1", Imports: []string{"go.etcd.io/etcd/server/v3/embed", "go.etcd.io/etcd/client/v3"}},
		{ImportPath: "go.etcd.io/etcd/server/v3/embed"},
		{ImportPath: "go.etcd.io/etcd/client/v3"},
	}
	expect(t, Closure(deps),
		Module+"/app compiles in k8s.io/kubernetes/pkg/scheduler",
		"k8s.io/api/core/v1 compiles in go.etcd.io/etcd/server/v3/embed")
}

func TestSamplePure(t *testing.T) {
	impure := func(imports, body string) []Finding {
		return Pure(sample(t, "core/queue/a.go", "package queue\n"+imports+"\nfunc f(x chan int, y map[int]int) {\n"+body+"\n}\n"))
	}
	const channelParam = "core/queue/a.go:3 channel type"
	expect(t, impure("", ""), channelParam)
	expect(t, impure("", "go f(nil, nil)"), channelParam, "go statement")
	expect(t, impure("", "x <- 1"), channelParam, "send on a channel")
	expect(t, impure("", "<-x"), channelParam, "receive from a channel")
	expect(t, impure("", "select {}"), channelParam, "select statement")
	expect(t, impure("", "println()"), channelParam, "println")
	expect(t, impure(`import "time"`, "_ = time.Second"), channelParam)
	expect(t, impure(`import clock "time"`, "now := clock.Now; _ = now"), channelParam, "use of time.Now")
	expect(t, impure(`import "fmt"`, "_ = fmt.Sprint()"), channelParam)
	expect(t, impure(`import "fmt"`, "fmt.Println()"), channelParam, "use of fmt.Println")

	for _, banned := range []string{"os", "os/exec", "sync", "sync/atomic", "log/slog", "math/rand/v2", "net/http", "k8s.io/apimachinery/pkg/util/wait"} {
		expect(t, Pure(sample(t, "core/queue/a.go", "package queue\nimport _ \""+banned+"\"\n")), "core imports "+banned)
	}
	for _, allowed := range []string{"slices", "math", "k8s.io/api/core/v1", "k8s.io/component-helpers/resource", Module + "/record"} {
		expect(t, Pure(sample(t, "core/queue/a.go", "package queue\nimport _ \""+allowed+"\"\n")))
	}
	expect(t, Pure(sample(t, "core/queue/a.go", "package queue\nimport _ \"k8s.io/client-go/kubernetes\"\n")), "core imports k8s.io/client-go")
	expect(t, Pure(sample(t, "core/queue/a.go", "package queue\nimport . \"strings\"\n")), "dot import of strings")
	expect(t, Pure(sample(t, "core/queue/a_test.go", "package queue\nimport _ \"os\"\n")))
	expect(t, Pure(sample(t, "kube/a.go", "package kube\nimport _ \"os\"\n")))
}

func TestSampleMapOrder(t *testing.T) {
	deps, err := compiledCore()
	if err != nil {
		t.Fatal(err)
	}
	checker := NewChecker(deps)
	judge := func(body string) []Finding {
		t.Helper()
		src := "package p\nimport (\n\"maps\"\n\"slices\"\n)\nvar _, _ = maps.Clone[map[int]int], slices.Max[[]int]\n" +
			"type table map[int]int\n" +
			"func f(m map[int]int, n table, s []int) (sum int) {\n" + body + "\nreturn sum\n}\n" +
			"func generic[M ~map[int]int](m M) {}\n"
		p, err := checker.Check("p", map[string]string{"core/p/a.go": src})
		if err != nil {
			t.Fatal(err)
		}
		return MapOrder(p)
	}
	expect(t, judge("for k := range m {\nsum = k\n}"), "range over a map")
	expect(t, judge("for _, v := range n {\nsum = v\n}"), "range over a map")
	expect(t, judge("for range m {\nsum++\n}"))
	expect(t, judge("for k := range s {\nsum = k\n}"))
	expect(t, judge("for _, v := range m { // order: a sum has none\nsum += v\n}"))
	expect(t, judge("// order: a sum has none\nfor _, v := range m {\nsum += v\n}"))
	expect(t, judge("for _, v := range m { // order: no\nsum += v\n}"), "range over a map")
	expect(t, judge("// order: a sum has none\n\n\nfor _, v := range s {\nsum += v\n}"), "remark about order")
	expect(t, judge("for k := range maps.Keys(m) {\nsum = k\n}"), "maps.Keys")
	expect(t, judge("sum = slices.Collect(maps.Values(m))[0]"), "maps.Values")
	expect(t, judge("for _, k := range slices.Sorted(maps.Keys(m)) {\nsum = k\n}"))
	expect(t, judge("_ = func(m map[int]int) { for k := range m { sum = k } }"), "range over a map")
}

func TestSampleMapOrderOfTypeParameters(t *testing.T) {
	deps, err := compiledCore()
	if err != nil {
		t.Fatal(err)
	}
	src := "package p\nfunc first[M ~map[int]int](m M) int {\nfor k := range m {\nreturn k\n}\nreturn 0\n}\n"
	p, err := NewChecker(deps).Check("p", map[string]string{"core/p/a.go": src})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, MapOrder(p), "core/p/a.go:3 range over a map")
}

func TestSamplePackageComments(t *testing.T) {
	const good = spdx + "\n\n// Package p owns samples.\npackage p\n"
	const bare = spdx + "\n\npackage p\n"
	expect(t, PackageComments(sample(t, "p/doc.go", good, "p/a.go", bare)))
	expect(t, PackageComments(sample(t, "p/a.go", bare)), "no package comment")
	expect(t, PackageComments(sample(t, "p/a.go", good, "p/b.go", bare)), "not in doc.go")
	expect(t, PackageComments(sample(t, "p/a.go", good, "p/a_test.go", bare)))
	expect(t, PackageComments(sample(t, "p/a.go", good, "p/doc.go", good)), "a second package comment")
	expect(t, PackageComments(sample(t, "p/doc.go", good, "p/a_test.go", good)), "a second package comment")
	expect(t, PackageComments(sample(t, "p/doc.go", spdx+"\npackage p\n")), "licence line")
	expect(t, PackageComments(sample(t, "p/doc.go", spdx+"\n\n// Package p is nice.\npackage p\n")), "what the package owns")
	expect(t, PackageComments(sample(t, "p/doc.go", spdx+"\n\n// This owns p.\npackage p\n")), "does not start with")
	expect(t, PackageComments(sample(t, "c/main.go", spdx+"\n\n// Command c greets.\npackage main\n")))
	expect(t, PackageComments(sample(t, "c/main.go", spdx+"\n\n// Package main greets.\npackage main\n")), "Command <name>")
}

func TestSampleGoFileForm(t *testing.T) {
	long := spdx + "\n\npackage p\n" + strings.Repeat("\n", maxLines)
	expect(t, GoFileForm(sample(t, "p/a.go", spdx+"\n\npackage p\n", "p/readme.md", "no licence line\n")))
	expect(t, GoFileForm(sample(t, "p/a.go", "package p\n")), "first line")
	expect(t, GoFileForm(sample(t, "p/a.go", long)), "703 lines")
}

func TestSampleFormatted(t *testing.T) {
	expect(t, Formatted(sample(t, "p/a.go", "package p\n\nvar x = 1 // one\n", "p/readme.md", "no Go\n")))
	expect(t, Formatted(sample(t, "p/a.go", "package p\nvar  x = 1\n", "p/b_test.go", "package p\n\nimport (\n\t\"os\"\n\t\"io\"\n)\n")),
		"p/a.go is not as gofmt writes it", "p/b_test.go is not as gofmt writes it")
	expect(t, Formatted(sample(t, "p/testdata/a.go", "package  p\n")))
}

func TestSampleText(t *testing.T) {
	slash := "/" // so that this file does not break the rule
	expect(t, Text(sample(t, "a.md", "see "+slash+"root/x\n")), "a.md:1 holds")
	expect(t, Text(sample(t, "a.go", "package a\nconst x = \""+slash+"home/x\"\n")), "a.go:2 holds")
	expect(t, Text(sample(t, "a.md", "https://example.org"+slash+"home/x ./some"+slash+"work/x\n")))
	expect(t, Text(sample(t, "Makefile", "GOPROXY=proxy."+"golang.org\n")), "Makefile:1 holds")
	expect(t, Text(sample(t, "a.md", "// TO"+"DO later\n")), "a.md:1 holds")
	expect(t, Text(sample(t, "go.sum", "proxy."+"golang.org\n", "a.md", "a ToDos list\n")))
}

func TestSampleSkips(t *testing.T) {
	inTest := func(imp, params, body string) []Finding {
		return Skips(sample(t, "p/a_test.go", "package p\nimport \""+imp+"\"\nfunc f("+params+") {\n"+body+"\n}\n"))
	}
	expect(t, inTest("testing", "t *testing.T", `t.Skip("slow")`), "t.Skip")
	expect(t, inTest("testing", "b testing.TB", `b.SkipNow()`), "b.SkipNow")
	expect(t, inTest("testing", "t *testing.T", `t.Run("x", func(u *testing.T) { u.Skipf("slow") })`), "u.Skipf")
	expect(t, inTest("testing", "t *testing.T", `func() { t.Skip() }()`), "t.Skip")
	expect(t, inTest("pgregory.net/rapid", "t *rapid.T", `t.Skip("not a case")`))
	expect(t, inTest("testing", "t *testing.T", `f := func(t *rapid.T) { t.Skip() }; _ = f`))
	expect(t, inTest("testing", "t *testing.T", `_ = t.Skipped()`))
}

func TestSampleGoroutines(t *testing.T) {
	count := func(dir, body string) []Finding {
		found, _ := Goroutines(sample(t, dir+"/a.go", "package p\nimport \"time\"\nfunc f() {\n"+body+"\n}\n"))
		return found
	}
	expect(t, count("record", "go f()"), "record/a.go:4 starts a goroutine")
	expect(t, count("record", "wg.Go(f)"), "record/a.go:4 starts a goroutine")
	expect(t, count("record", "time.AfterFunc(1, f)"), "record/a.go:4 starts a goroutine")
	expect(t, count("record", "f()"))
	expect(t, count("view", "go f()"))
	expect(t, count("localcluster/pki", "go f()"))
	expect(t, count("view", strings.Repeat("go f()\n", goroutines["view"].most+1)), "number 5 of view, agreed are 4")
}

func TestSampleCitations(t *testing.T) {
	page := "| # | rule |\n|---|---|\n| R5 | whole gangs |\n"
	cite := func(path, text string) []Finding { return Citations(sample(t, rulesPage, page, path, text)) }
	expect(t, cite("core/engine/a.go", "package engine\n\n// x goes whole (rule R5).\n"))
	expect(t, cite("core/engine/a.go", "package engine\n\n// x (rules R5, R6).\n"), "core/engine/a.go:3 cites R6, which is not defined")
	expect(t, cite("core/engine/testdata/a.txt", "# it fails midway (A15)\n"), "core/engine/testdata/a.txt:1 cites A15")
	expect(t, cite("docs/a.md", "see H22\n"), "docs/a.md:1 cites H22")
	expect(t, cite("record/a.go", "package record\n\nvar R6 = 1\n"))
	expect(t, Citations(sample(t, rulesPage, page+"| R5 | again |\n")), "defines R5 again")
}

func TestSampleDocuments(t *testing.T) {
	const note = "# 0001: Title\n\nStatus: accepted, 20 November 2026.\n"
	index := func(text string, more ...string) []Finding {
		return Documents(sample(t, append([]string{docsIndex, text}, more...)...))
	}
	expect(t, index("[a](a.md)\n", "docs/a.md", "# A\n"))
	expect(t, index("", "docs/a.md", "# A\n"), "docs/a.md is not in docs/README.md")
	expect(t, index("[a](a.md#two-words)\n", "docs/a.md", "# A\n\n## Two words!\n"))
	expect(t, index("[a](a.md#b)\n", "docs/a.md", "# A\n"), "which has no such heading")
	expect(t, index("[a](a.md#a-1)\n", "docs/a.md", "# A\n\n## A\n"))
	expect(t, index("[a](a.md#b)\n", "docs/a.md", "# A\n\n| <a id=\"b\"></a>row |\n"))
	expect(t, index("[a](../core) [b](https://example.org/x)\n", "core/a.go", "package core\n"))
	expect(t, index("[a](gone.md)\n"), "docs/README.md:1 links to gone.md, which does not exist")
	expect(t, index("```\n[a](gone.md)\n```\n"))
	expect(t, index("[n](design/0001-a.md)\n", "docs/design/0001-a.md", note))
	expect(t, index("[n](design/0002-a.md)\n", "docs/design/0002-a.md", note), "does not start with `# 0002: `")
	expect(t, index("[n](design/0001-a.md)\n", "docs/design/0001-a.md", "# 0001: Title\n"), "has no line `Status:")
	expect(t, index("[n](design/a.md)\n", "docs/design/a.md", note), "is not named NNNN-title.md")
	expect(t, Documents(sample(t, "README.md", "[x](docs/gone.md)\n")), "README.md:1 links to docs/gone.md")
}

func TestSamplePaths(t *testing.T) {
	named := func(text string) []Finding {
		return Paths(sample(t, "README.md", text+"\n", "core/queue/a.go", "package queue\n"))
	}
	expect(t, named("`core/queue/a.go`, `core/queue/`, `core/...`, `core/queue.Rest`"))
	expect(t, named("`core/place`"), "README.md:1 names core/place, which does not exist")
	expect(t, named("`core/queue/b.go`"), "README.md:1 names core/queue/b.go")
	expect(t, named("`text/plain`, `core/NAME/a.go`"))
}

func TestSampleUnimplemented(t *testing.T) {
	says := func(page string) []Finding {
		return Unimplemented(sample(t, page, "## Not built yet\n\nsee [there](compatibility.md#not-implemented-yet)\n"))
	}
	expect(t, says("docs/gangs.md"), `docs/gangs.md:1 says "Not built yet"`)
	expect(t, says(unimplementedPage))
}

// TestSampleFacts: a field without a mark is found, also in a struct that a kept field holds, in another package, and
// behind a pointer; one that a derived field holds is not.
func TestSampleFacts(t *testing.T) {
	saved := owners
	owners = map[string][]string{"core/queue": {"Queue"}}
	defer func() { owners = saved }()
	const queue = "package queue\nimport \"" + Module + "/core/deadline\"\n" +
		"type Queue struct {\n\tnow int // kept\n\tunits map[string]*unit // kept; name -> unit\n" +
		"\tcache cache // derived: from units\n\tdue deadline.Entry // kept\n%s}\n" +
		"type unit struct {\n\tname string // kept\n%s}\n" +
		"type cache struct{ all []*unit }\ntype Value struct{ A, B int }\n"
	const entry = "package deadline\ntype Entry struct {\n\tAt int // kept\n%s}\n"
	tree := func(inQueue, inUnit, inEntry string) *Tree {
		return sample(t, "core/queue/a.go", fmt.Sprintf(queue, inQueue, inUnit),
			"core/deadline/a.go", fmt.Sprintf(entry, inEntry))
	}
	expect(t, Facts(tree("", "", "")))
	expect(t, Facts(tree("\tnew int\n", "", "")), "field new of Queue")
	expect(t, Facts(tree("\tnew int // a number\n", "", "")), "field new of Queue")
	expect(t, Facts(tree("\tnew int // derived:\n", "", "")), "field new of Queue")
	expect(t, Facts(tree("\tv Value // kept\n", "", "")))
	expect(t, Facts(tree("", "\tnew int\n", "")), "field new of unit")
	expect(t, Facts(tree("", "", "\tindex int\n")), "field index of Entry")
	expect(t, Facts(tree("\tcache2 *cache // kept\n", "", "")), "field all of cache")
	expect(t, Facts(sample(t, "core/queue/a.go", "package queue\n")), "has no struct Queue")
}
