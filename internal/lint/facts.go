// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// owners are the types that own the state of the scheduler: package -> types. The types of their kept fields follow.
var owners = map[string][]string{
	"core/engine":          {"Engine"},
	"core/pace":            {"Sessions"},
	"core/blocked":         {"Gangs"},
	"core/cluster":         {"Store"},
	"core/queue":           {"Queue"},
	"core/evict":           {"Manager"},
	"core/deadline":        {"Entry"},
	"core/plugins/volumes": {"heldVolumes"},
	"host/devices":         {"hold"},
}

// factMark is how the comment behind a field begins.
var factMark = regexp.MustCompile(`^// (kept(; .*)?|derived: .+)$`)

// structType is a struct that a package declares.
type structType struct {
	file *File
	decl *ast.StructType
}

// Facts finds fields of the scheduler's state that do not say whether they are kept. A resumed engine has what its
// State holds: a field is in it, or says what it is computed from.
//
// The comment behind a field is "// kept", with more behind a semicolon, or "// derived: why". Of a kept field the
// rule follows the types: a struct with unexported fields is marked too. One whose fields are all exported is a value,
// which a State copies whole.
func Facts(t *Tree) []Finding {
	const why = "a resumed scheduler must decide as the one before (docs/design/0011-state-and-resume.md): " +
		"a fact that State does not hold is lost, and a cache in it costs memory. " +
		"Mark the field \"// kept\" and add it to the State of its package, or \"// derived: \" and from what"
	structs := structsOf(t)
	type named struct{ dir, name string }
	var todo []named
	for _, dir := range sortedTypes(owners) {
		for _, name := range owners[dir] {
			todo = append(todo, named{dir, name})
		}
	}
	var found []Finding
	seen := map[named]bool{}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		of, known := structs[next.dir+"."+next.name]
		switch {
		case seen[next]:
			continue
		case !known && slices.Contains(owners[next.dir], next.name):
			found = append(found, Finding{next.dir, "has no struct " + next.name,
				"internal/lint/facts.go names it as an owner of state"})
			continue
		case !known:
			continue
		}
		seen[next] = true
		for _, field := range of.decl.Fields.List {
			mark := ""
			if field.Comment != nil {
				mark = field.Comment.List[0].Text
			}
			if !factMark.MatchString(mark) {
				found = append(found, Finding{t.at(field),
					fmt.Sprintf("field %s of %s is not marked as kept or derived", fieldName(field), next.name), why})
				continue
			}
			if strings.HasPrefix(mark, "// derived") {
				continue
			}
			for _, ref := range typesIn(of.file, field.Type) {
				if to, ok := structs[ref]; ok && !isValue(to.decl) {
					dir, name, _ := cutLast(ref, ".")
					todo = append(todo, named{dir, name})
				}
			}
		}
	}
	return found
}

// structsOf are the structs of the repository: package.name -> struct.
func structsOf(t *Tree) map[string]structType {
	structs := map[string]structType{}
	for _, f := range t.GoFiles(false) {
		for _, d := range f.AST.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					if s, ok := typ.Type.(*ast.StructType); ok {
						structs[f.Dir()+"."+typ.Name.Name] = structType{f, s}
					}
				}
			}
		}
	}
	return structs
}

// isValue reports whether all fields of a struct are exported.
func isValue(s *ast.StructType) bool {
	return !slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return !ast.IsExported(fieldName(f))
	})
}

// fieldName is the first name of a field, that of its type for an embedded one.
func fieldName(f *ast.Field) string {
	if len(f.Names) > 0 {
		return f.Names[0].Name
	}
	name := ""
	ast.Inspect(f.Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			name = id.Name // the last one, behind a package
		}
		return true
	})
	return name
}

// typesIn are the named types of this repository in the type of a field, as package.name.
func typesIn(f *File, e ast.Expr) (refs []string) {
	names := localNames(f.AST)
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			return false
		case *ast.SelectorExpr:
			if pkg, name, ok := selected(names, n); ok {
				if dir, ours := strings.CutPrefix(pkg, Module+"/"); ours {
					refs = append(refs, dir+"."+name)
				}
			}
			return false
		case *ast.Ident:
			refs = append(refs, f.Dir()+"."+n.Name)
		}
		return true
	})
	return refs
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func sortedTypes(of map[string][]string) []string {
	dirs := make([]string, 0, len(of))
	for dir := range of {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}
