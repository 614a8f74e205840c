// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// How a difference begins when only one side refuses the file, or only kumiki a field of it.
const (
	kumikiAlone    = "refused by kumiki alone: "
	upstreamAlone  = "refused by upstream alone: "
	upstreamSilent = "upstream says nothing about "
)

// Result is what a comparison came to.
type Result struct {
	Upstream, Kumiki Answer
	// Exceptions are the differences by design that were met, by name.
	Exceptions []string
	// Unexplained are the other differences.
	Unexplained []string
}

// Compare puts a file to both sides. Fields that kumiki alone calls wrong count as a difference only where one thing is
// wrong with the file: upstream stops at the first stage that finds something, kumiki does not.
func Compare(text []byte, oneFault bool) Result {
	r := Result{Upstream: Upstream(text)}
	r.Kumiki, _ = Kumiki(text)
	var differences []string
	switch up, us := r.Upstream, r.Kumiki; {
	case up.Accepted() && us.Accepted():
		differences = Differences(up.Effective, us.Effective)
	case up.Accepted():
		for _, problem := range us.Problems {
			differences = append(differences, kumikiAlone+problem)
		}
	case us.Accepted():
		differences = []string{upstreamAlone + up.Text}
	default:
		differences = fields(up, us, oneFault)
	}
	if len(differences) == 0 {
		return r
	}
	named := names(text)
	for _, d := range differences {
		if i := slices.IndexFunc(Exceptions, func(e Exception) bool { return e.explains(d, named) }); i >= 0 {
			r.Exceptions = append(r.Exceptions, Exceptions[i].Name)
		} else {
			r.Unexplained = append(r.Unexplained, d)
		}
	}
	return r
}

// names finds the plugin that each entry of pluginConfig is for: path of the entry -> plugin.
func names(text []byte) map[string]string {
	out := map[string]string{}
	tree := object{}
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return out // not even YAML
	}
	for _, s := range slots("", tree) {
		if entry, ok := strings.CutSuffix(s.path, "].name"); ok && strings.Contains(entry, ".pluginConfig[") {
			out[entry+"]"], _ = s.get().(string)
		}
	}
	return out
}

// fields compares the fields of two refusals. Upstream's errors of types name none.
func fields(up, us Answer, oneFault bool) []string {
	var out []string
	unnamed := slices.Contains(up.Paths, "")
	for _, path := range up.Paths {
		if path != "" && !slices.ContainsFunc(us.Paths, func(ours string) bool { return same(path, ours) }) {
			out = append(out, fmt.Sprintf("kumiki says nothing about %s", path))
		}
	}
	for _, path := range us.Paths {
		later := up.Stage == Decoding || up.Stage == Validating && strings.HasSuffix(path, ".name")
		if oneFault && !unnamed && !later && !slices.ContainsFunc(up.Paths, func(theirs string) bool { return same(theirs, path) }) {
			out = append(out, upstreamSilent+path)
		}
	}
	return out
}

// same reports whether upstream and kumiki speak of one field. Upstream often names the object where kumiki names the
// field in it, and leaves out what leads to the arguments of a plugin.
func same(upstream, kumiki string) bool {
	upstream = strings.ReplaceAll(upstream, "queueSort.Enabled", "queueSort.enabled")
	if kumiki == upstream || strings.HasSuffix(kumiki, "."+upstream) {
		return true
	}
	rest, below := strings.CutPrefix(kumiki, upstream)
	return below && (rest[0] == '.' || rest[0] == '[')
}
