// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/printer"
	"regexp"
	"strings"
)

// events extracts what plugins register: plugin, resource and action -> the function of the hint.
func events(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "pkg/scheduler/framework/plugins"})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	functions(files, func(f source, fn *ast.FuncDecl) {
		if fn.Name.Name != "EventsToRegister" {
			return
		}
		plugin := function(fn)[:strings.Index(function(fn), ".")]
		walk(fn.Body, func(n ast.Node, parents []ast.Node) {
			l, ok := n.(*ast.CompositeLit)
			if !ok || fields(l)["Resource"] == nil {
				return
			}
			hint := "no hint"
			for i := len(parents) - 1; i >= max(0, len(parents)-2); i-- {
				if outer, ok := parents[i].(*ast.CompositeLit); ok && fields(outer)["QueueingHintFn"] != nil {
					hint = last(fields(outer)["QueueingHintFn"])
				}
			}
			event := fields(l)
			key := f.dir()[strings.LastIndex(f.dir(), "/")+1:] + "." + plugin + ": " + last(event["Resource"])
			if a := event["ActionType"]; a != nil {
				key += "/" + strings.ReplaceAll(text(a), "fwk.", "")
			}
			if when := condition(parents); when != "" {
				hint += ", if " + when
			}
			if was := out[key]; was != "" && was != hint {
				hint = was + "; " + hint
			}
			out[key] = hint
		})
	})
	return out, nil
}

// condition is the condition of the nearest if statement around a node.
func condition(parents []ast.Node) string {
	for i := len(parents) - 1; i >= 0; i-- {
		if s, ok := parents[i].(*ast.IfStmt); ok {
			return text(s.Cond)
		}
	}
	return ""
}

// logging are names of functions whose messages go to a log, which no client parses.
var logging = regexp.MustCompile(`^(Info|InfoS|Infof|Error|ErrorS|Warning|Warningf|V|UnhandledError.*|HandleError.*)$`)

// messages extracts texts that users may see: text -> files with it. Texts of logs and help texts are left out.
func messages(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "pkg/scheduler"}, place{kubernetes, "cmd/kube-scheduler"},
		place{"k8s.io/component-helpers", "scheduling"}, place{"k8s.io/component-helpers", "resource"},
		place{"k8s.io/component-helpers", "nodedeclaredfeatures"}, place{"k8s.io/dynamic-resource-allocation", ""})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		if strings.Contains(f.path, "/pkg/scheduler/metrics/") {
			continue
		}
		walk(f.file, func(n ast.Node, parents []ast.Node) {
			lit, ok := n.(*ast.BasicLit)
			if !ok {
				return
			}
			s, ok := str(lit, nil)
			if !ok || !strings.Contains(s, " ") || hidden(parents) {
				return
			}
			if was := out[s]; was == "" {
				out[s] = f.short()
			} else if !strings.Contains(was, f.short()) {
				out[s] = was + ", " + f.short()
			}
		})
	}
	return out, nil
}

// hidden reports whether a literal is a tag, an import, or an argument of a call that logs or declares a flag.
func hidden(parents []ast.Node) bool {
	for i := len(parents) - 1; i >= 0; i-- {
		switch p := parents[i].(type) {
		case *ast.ImportSpec, *ast.Field:
			return true
		case *ast.CallExpr:
			if name := last(p.Fun); logging.MatchString(name) || strings.HasSuffix(name, "Var") {
				return true
			}
		case ast.Stmt:
			return false
		}
	}
	return false
}

// roles extracts the rules of the role system:kube-scheduler: group and resources -> verbs, and under which condition.
func roles(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "plugin/pkg/auth/authorizer/rbac/bootstrappolicy"})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		walk(f.file, func(n ast.Node, parents []ast.Node) {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != 1 || text(a.Lhs[0]) != "kubeSchedulerRules" {
				return
			}
			when := ""
			for _, p := range parents {
				if s, ok := p.(*ast.IfStmt); ok {
					when += ", if " + last(argument(s.Cond))
				}
			}
			walk(a, func(n ast.Node, _ []ast.Node) {
				call, ok := n.(*ast.CallExpr)
				if !ok || last(call.Fun) != "RuleOrDie" {
					return
				}
				verbs, of := chain(call)
				if was := out[of]; was != "" {
					verbs = was + "; " + verbs
				}
				out[of] = verbs + when
			})
		})
	}
	return out, nil
}

// argument is the only argument of a call, or the expression itself.
func argument(e ast.Expr) ast.Expr {
	if c, ok := e.(*ast.CallExpr); ok && len(c.Args) == 1 {
		return c.Args[0]
	}
	return e
}

// chain reads NewRule(verbs).Groups(…).Resources(…).RuleOrDie().
func chain(call *ast.CallExpr) (verbs, of string) {
	for {
		fn, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return verbs, of
		}
		var args []string
		for _, a := range call.Args {
			args = append(args, strings.Trim(text(a), `"`))
		}
		switch list := strings.Join(args, ", "); fn.Sel.Name {
		case "NewRule":
			verbs = list
		case "RuleOrDie":
		default:
			of = strings.TrimSpace(strings.ToLower(fn.Sel.Name) + " " + list + " " + of)
		}
		inner, ok := fn.X.(*ast.CallExpr)
		if !ok {
			return verbs, of
		}
		call = inner
	}
}

// bodies extracts functions: file and name -> text without comments.
func bodies(places ...place) func(release) (map[string]string, error) {
	return func(r release) (map[string]string, error) {
		files, err := r.sources(places...)
		if err != nil {
			return nil, err
		}
		out := map[string]string{}
		functions(files, func(f source, fn *ast.FuncDecl) {
			fn.Doc = nil
			var b bytes.Buffer
			// Without the file's comments, the printer prints none.
			if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, f.set, fn); err != nil {
				b.WriteString(err.Error())
			}
			out[f.dir()+" "+function(fn)] = blankLines.ReplaceAllString(b.String(), "\n")
		})
		return out, nil
	}
}

var blankLines = regexp.MustCompile(`\n\s*\n+`)
