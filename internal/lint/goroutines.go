// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"slices"
)

// budget is how many places of a package may start a goroutine, and who ends them.
type budget struct {
	most int
	why  string
}

// goroutines lists the packages that may start goroutines: package or tree (a/...) -> how many places. A number goes
// up in the change that needs it, which says there what ends the goroutine.
var goroutines = map[string]budget{
	"kube": {7, "the loop, the election, the planners and what watches over them; " +
		"they end with the context of the scheduler"},
	"kube/intake":    {2, "one for each watch, and a timer while it asks; they end with Informers.Stop"},
	"kube/instances": {1, "one for each local planner; they end with the context of the scheduler"},
	"kube/effects": {5, "writes run side by side; " +
		"they end with the context of the scheduler, or with Drain and Stop"},
	"app":           {8, "serving, leader election and the loop; they end with the context of the command"},
	"apm/outside":   {6, "answers at the same time, samples, and a limit of time; Record or Session.End waits"},
	"view":          {4, "live streams; they end with the request"},
	"bench":         {4, "samplers; they end with the run"},
	"bench/testbed": {1, "reads the output of a scheduler's process; ends with the process"},
	"bench/wire":    {1, "the profile of the measured process; awaited before the trial ends"},
	"bench/noop": {10, "binders, writers of events and watches; " +
		"they end with the command, or with the run that is recorded"},
	"bench/restart":        {3, "creators of pods and profiles; they end with the start that is measured"},
	"bench/standin":        {1, "serves; ends with Close, which waits for it"},
	"conformance/seam/...": {2, "the scheduler of a test, and the limit of time of its process; they end with the test"},
	"host/framework":       {1, "calls a factory that may not return; ends with the factory, or with the process"},
	"sim/simtest":          {1, "looks at the calls of plugins; ends with the run"},
	"bench/ops":            {4, "creators, churn, deletions and the watch of pods; Run ends and awaits all of them"},
	"app/command/...":      {10, "signals, child processes, recordings and incidents; they end with the command"},
	"internal/probe":       {1, "runs one test that may fail; waited for at once"},
	"internal/mutation":    {1, "runs test processes side by side; waited for before it returns"},
	"internal/e2e/checker": {2, "keeps the history of bindings; ends with the test"},
	"internal/ecosystem":   {2, "wait for a child process; they end with it, or with the wait until it is ready"},
	"internal/fault": {10, "for each watch, late request, connection of a proxy and clock; " +
		"they end with these, or with the proxy"},
	"internal/fakekubelet": {3, "both directions of a forwarded connection; they end with the connection"},
	"internal/learntest":   {4, "commands in the background of a chapter; they end with the chapter"},
	"internal/reliability": {16, "processes that are watched, pods that are made side by side; " +
		"they end with the case or with the soak"},
	"internal/build/...":   {3, "links side by side, shows the progress, lists the packages; they end with the build"},
	"internal/testcluster": {8, "watches the child process and its output; ends with the test"},
	"localcluster/...":     {24, "supervises child processes; they end with the cluster"},

	"internal/profilecheck": {10, "creators of pods and volumes, a server that is stopped, and both directions of " +
		"a slow socket; they end with the injection, or with the check"},
	"internal/profilecheck/inject": {1, "holds a lock for as long as the scheduler with the cause runs"},
}

// Goroutines returns goroutines that are started in unexpected places, or in more places than agreed. It returns the
// counts too: tree or package -> places.
func Goroutines(t *Tree) ([]Finding, map[string]int) {
	const why = "each goroutine needs an owner who ends it; few packages start them so that a reader can check all of them"
	var found []Finding
	counts := map[string]int{}
	for _, f := range t.GoFiles(false) {
		names := localNames(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if n == nil || !startsGoroutine(names, n) {
				return true
			}
			entry := budgetOf(f.Dir())
			if entry == "" {
				found = append(found, Finding{t.at(n), "starts a goroutine", why + "; allow the package in internal/lint/goroutines.go, with who ends it"})
				return true
			}
			counts[entry]++
			if b := goroutines[entry]; counts[entry] > b.most {
				found = append(found, Finding{t.at(n), fmt.Sprintf("starts a goroutine, number %d of %s, agreed are %d (%s)", counts[entry], entry, b.most, b.why), why})
			}
			return true
		})
	}
	return found, counts
}

// startsGoroutine reports whether a node is a go statement, a call of a Go method of a wait group, or a timer that
// calls a function.
func startsGoroutine(names map[string]string, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		if pkg, name, ok := selected(names, n.Fun); ok {
			return pkg == "time" && name == "AfterFunc"
		}
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// budgetOf finds the entry that covers a package.
func budgetOf(dir string) string {
	for entry := range goroutines {
		if covers([]string{entry}, dir) {
			return entry
		}
	}
	return ""
}

// sortedKeys lists the keys of counts in order.
func sortedKeys(counts map[string]int) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
