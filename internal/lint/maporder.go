// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
)

const orderWhy = "Go visits maps in a random order, so a decision that follows it differs from run to run, and replay, the oracle and the " +
	"class structure stop agreeing. Sort first, or write `// order: <why it cannot matter>` on the line"

// orderMark is the comment that says why the order of a map cannot matter at this place.
var orderMark = regexp.MustCompile(`(?:^|\s)order: (\S.{7,})`)

// mapIterators are the functions of package maps that visit in map order.
var mapIterators = map[string]bool{"Keys": true, "Values": true, "All": true} // name -> visits in map order

// orderFree are the calls that may take such an iterator, because their result has no order or is sorted.
var orderFree = map[string]bool{ // package.name -> result does not show the order
	"slices.Sorted": true, "slices.SortedFunc": true, "maps.Collect": true, "maps.Insert": true,
}

// MapOrder finds visits of maps in core that do not say why their order cannot matter, and such remarks where no map
// is visited.
func MapOrder(p *Package) []Finding {
	var found []Finding
	for _, f := range p.Files {
		marks := orderMarks(p, f) // line -> used
		visit := func(n ast.Node, what string) {
			line := p.Fset.Position(n.Pos()).Line
			for _, l := range []int{line, line - 1} {
				if _, ok := marks[l]; ok {
					marks[l] = true
					return
				}
			}
			found = append(found, Finding{p.at(n), what, orderWhy})
		}
		eachMapVisit(p, f, visit)
		for line, used := range marks {
			if !used {
				found = append(found, Finding{p.atLine(f, line), "remark about order where no map is visited",
					"a remark that has lost its loop misleads the next reader; remove it, or word it without `order:`"})
			}
		}
	}
	return found
}

// orderMarks are the lines that carry a remark about order.
func orderMarks(p *Package, f *ast.File) map[int]bool {
	marks := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if orderMark.MatchString(strings.TrimPrefix(c.Text, "//")) {
				marks[p.Fset.Position(c.Pos()).Line] = false
			}
		}
	}
	return marks
}

// eachMapVisit calls visit for every range over a map that looks at keys or values, and for every iterator of package
// maps that does not go straight into something that forgets the order.
func eachMapVisit(p *Package, f *ast.File, visit func(n ast.Node, what string)) {
	forgotten := map[ast.Expr]bool{} // call -> its order is not kept
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if (n.Key != nil || n.Value != nil) && isMap(p.Info.TypeOf(n.X)) {
				visit(n, "range over a map")
			}
		case *ast.CallExpr:
			pkg, name := p.callee(n)
			if orderFree[pkg+"."+name] {
				for _, arg := range n.Args {
					forgotten[arg] = true
				}
			}
			if pkg == "maps" && mapIterators[name] && !forgotten[n] {
				visit(n, "maps."+name+" that is not sorted")
			}
		}
		return true
	})
}

// isMap reports whether ranging over a value of this type visits a map; type parameters count if any of their types
// is a map.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if param, ok := types.Unalias(t).(*types.TypeParam); ok {
		iface := param.Constraint().Underlying().(*types.Interface)
		for i := range iface.NumEmbeddeds() {
			union, ok := iface.EmbeddedType(i).Underlying().(*types.Union)
			if !ok {
				if isMap(iface.EmbeddedType(i)) {
					return true
				}
				continue
			}
			for j := range union.Len() {
				if isMap(union.Term(j).Type()) {
					return true
				}
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}
