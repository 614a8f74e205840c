// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

const pureWhy = "core is a function of events and ticks; replay, simulation and the oracle stand on that. "

// bannedImports are the packages of the standard library and of apimachinery that core cannot have: tree -> why.
var bannedImports = map[string]string{
	"os":             pureWhy + "I/O belongs to kube and cmd",
	"io/fs":          pureWhy + "I/O belongs to kube and cmd",
	"net":            pureWhy + "I/O belongs to kube and cmd",
	"syscall":        pureWhy + "I/O belongs to kube and cmd",
	"context":        pureWhy + "a step is never cancelled half-way",
	"sync":           pureWhy + "one goroutine owns the core, so there is nothing to lock",
	"log":            pureWhy + "what there is to say goes out as a record",
	"math/rand":      pureWhy + "ties are drawn from a counter generator keyed by seed and decision number",
	"crypto/rand":    pureWhy + "ties are drawn from a counter generator keyed by seed and decision number",
	"hash/maphash":   pureWhy + "its seed differs from process to process",
	"runtime/debug":  pureWhy + "what there is to say goes out as a record",
	"testing":        "helpers for tests belong into _test.go files",
	"k8s.io/klog":    pureWhy + "what there is to say goes out as a record",
	"unsafe":         "columns are plain slices; nothing here needs it",
	apimachineryWait: pureWhy + "waiting is a Wake effect",
	apimachineryRand: pureWhy + "ties are drawn from a counter generator keyed by seed and decision number",
	apimachineryRun:  pureWhy + "it logs and catches panics in its own way",
}

const (
	apimachineryWait = "k8s.io/apimachinery/pkg/util/wait"
	apimachineryRand = "k8s.io/apimachinery/pkg/util/rand"
	apimachineryRun  = "k8s.io/apimachinery/pkg/util/runtime"
)

// coreModules are the modules outside the standard library that core may import.
var coreModules = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/component-helpers", Module}

// bannedNames are single functions that core cannot use: package and name -> why.
var bannedNames = map[string]string{
	"time.Now":       pureWhy + "time comes in as Tick(now)",
	"time.Since":     pureWhy + "time comes in as Tick(now)",
	"time.Until":     pureWhy + "time comes in as Tick(now)",
	"time.Sleep":     pureWhy + "waiting is a Wake effect",
	"time.After":     pureWhy + "waiting is a Wake effect",
	"time.AfterFunc": pureWhy + "waiting is a Wake effect",
	"time.Tick":      pureWhy + "waiting is a Wake effect",
	"time.NewTimer":  pureWhy + "waiting is a Wake effect",
	"time.NewTicker": pureWhy + "waiting is a Wake effect",
	"fmt.Print":      pureWhy + "what there is to say goes out as a record",
	"fmt.Printf":     pureWhy + "what there is to say goes out as a record",
	"fmt.Println":    pureWhy + "what there is to say goes out as a record",

	"k8s.io/apimachinery/pkg/apis/meta/v1.Now":      pureWhy + "time comes in as Tick(now)",
	"k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro": pureWhy + "time comes in as Tick(now)",
}

// Pure finds what core must not have: a clock, I/O, goroutines and what goes with them, logging, a global source of
// randomness, modules of others.
func Pure(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.GoFiles(false) {
		if !f.In("core") {
			continue
		}
		found = append(found, pureImports(t, f)...)
		names := localNames(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if what, why := impure(names, n); what != "" {
				found = append(found, Finding{t.at(n), what, why})
			}
			return true
		})
	}
	return found
}

func pureImports(t *Tree, f *File) []Finding {
	var found []Finding
	for _, spec := range f.AST.Imports {
		p := importPath(spec)
		if spec.Name != nil && spec.Name.Name == "." {
			found = append(found, Finding{t.at(spec), "dot import of " + p, "a reader, and these rules, must see where a name comes from"})
		}
		first, _, _ := strings.Cut(p, "/")
		if strings.Contains(first, ".") && !inTrees(coreModules, p) {
			found = append(found, Finding{t.at(spec), "core imports " + p,
				"core takes the standard library, the API types and component-helpers, so that it compiles fast, embeds anywhere and holds no surprise"})
		}
		for tree, why := range bannedImports {
			if inTrees([]string{tree}, p) {
				found = append(found, Finding{t.at(spec), "core imports " + p, why})
			}
		}
	}
	return found
}

// inTrees reports whether an import path is one of the trees or below one.
func inTrees(trees []string, p string) bool {
	for _, tree := range trees {
		if p == tree || strings.HasPrefix(p, tree+"/") {
			return true
		}
	}
	return false
}

// impure judges one piece of syntax; what is empty when nothing is wrong with it.
func impure(names map[string]string, n ast.Node) (what, why string) {
	const serial = pureWhy + "side by side is kube's business"
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement", serial
	case *ast.ChanType:
		return "channel type", serial
	case *ast.SendStmt:
		return "send on a channel", serial
	case *ast.SelectStmt:
		return "select statement", serial
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receive from a channel", serial
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			return id.Name, pureWhy + "what there is to say goes out as a record"
		}
	case *ast.SelectorExpr:
		if pkg, name, ok := selected(names, n); ok {
			if why, banned := bannedNames[pkg+"."+name]; banned {
				return fmt.Sprintf("use of %s.%s", pkg, name), why
			}
		}
	}
	return "", ""
}
