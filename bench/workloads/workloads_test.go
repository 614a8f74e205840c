// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

func cases(t *testing.T) []*workload.Case {
	t.Helper()
	all, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	var out []*workload.Case
	for _, f := range all {
		out = append(out, f.Cases...)
	}
	return out
}

// plans calls back for every workload of every case.
func plans(t *testing.T, each func(t *testing.T, w *workload.Workload, p workload.Plan)) {
	t.Helper()
	for _, c := range cases(t) {
		for _, w := range c.Workloads {
			t.Run(c.Name+"/"+w.Name, func(t *testing.T) {
				p, err := c.Plan(w)
				if err != nil {
					t.Fatal(err)
				}
				each(t, w, p)
			})
		}
	}
}

// Catches: a file with a mistake, a template that does not read for the first or the last object, a parameter that
// nothing uses, and a case that cannot be found by its name.
func TestEveryWorkloadLoadsAndPlans(t *testing.T) {
	n := 0
	plans(t, func(*testing.T, *workload.Workload, workload.Plan) { n++ })
	if n < 100 {
		t.Errorf("only %d workloads", n)
	}
	for _, c := range cases(t) {
		if same, err := Case(c.Name); err != nil || same.Name != c.Name {
			t.Errorf("%s by its name: %v", c.Name, err)
		}
	}
	if _, err := Case("nothing"); err == nil || !strings.Contains(err.Error(), "there are anti-affinity, ") {
		t.Errorf("an unknown name: %v", err)
	}
}

// Catches: a case without a workload that runs in seconds or without one that is large enough to measure, and two
// cases of one name in two files.
func TestEveryCaseHasASmallAndALargeWorkload(t *testing.T) {
	lines := map[string]bool{} // case -> met
	for _, c := range cases(t) {
		if lines[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		lines[c.Name] = true
		small := slices.ContainsFunc(c.Workloads, func(w *workload.Workload) bool { return w.Name == "small" && slices.Contains(w.Labels, "short") })
		large := slices.ContainsFunc(c.Workloads, func(w *workload.Workload) bool { return slices.Contains(w.Labels, "performance") })
		if !small || !large {
			t.Errorf("%s: small %v, performance %v", c.Name, small, large)
		}
	}
}

// notInTable are the cases that the comparison table leaves out -> why.
var notInTable = map[string]string{
	"publish-devices":      "it measures slices, no pods",
	"devices-backtracking": "it measures one pod",
	"volumes-late":         "the controller that binds volumes is slower than any scheduler",
}

// Catches: a new family that the comparison table does not have.
func TestEveryCaseIsInTheComparisonTable(t *testing.T) {
	for _, c := range cases(t) {
		in := slices.ContainsFunc(c.Workloads, func(w *workload.Workload) bool { return slices.Contains(w.Labels, "table") })
		if why := notInTable[c.Name]; in == (why != "") {
			t.Errorf("%s: label table %v, reason to leave it out %q", c.Name, in, why)
		}
	}
}

// Catches: a template that a renamed or deleted case left behind and no case uses.
func TestEveryTemplateIsUsed(t *testing.T) {
	used := map[string]bool{} // path -> used
	plans(t, func(_ *testing.T, _ *workload.Workload, p workload.Plan) {
		for _, template := range templatesOf(p) {
			used[template.Path] = true
		}
	})
	err := fs.WalkDir(files, "templates", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !used[path] {
			t.Errorf("no workload uses %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func templatesOf(p workload.Plan) []*workload.Template {
	out := []*workload.Template{p.DefaultPod}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *workload.CreateNodes:
			out = append(out, op.Template)
		case *workload.CreateNamespaces:
			out = append(out, op.Template)
		case *workload.CreatePods:
			out = append(out, op.Template, op.Volume, op.Claim)
		case *workload.CreatePodSets:
			out = append(out, op.Pods.Template, op.Pods.Volume, op.Pods.Claim)
		case *workload.CreateAny:
			out = append(out, &op.Template)
		case *workload.UpdateAny:
			out = append(out, &op.Template)
		case *workload.CreateResourceClaims:
			out = append(out, &op.Template)
		case *workload.CreatePodGroups:
			out = append(out, &op.Template)
		case *workload.Churn:
			for i := range op.Templates {
				out = append(out, &op.Templates[i])
			}
		}
	}
	return slices.DeleteFunc(out, func(t *workload.Template) bool { return t == nil })
}

// Catches: objects with fixed names that two operations of a case create in one namespace, and an update of something
// that was never created: either fails after the cluster has been filled.
func TestNamesOfObjectsDoNotMeet(t *testing.T) {
	plans(t, func(t *testing.T, w *workload.Workload, p workload.Plan) {
		if !slices.Contains(w.Labels, "short") {
			return // the same operations, only more of them
		}
		there := map[string]int{} // kind namespace/name -> operation
		create := func(op int, namespace string, template *workload.Template, count int) {
			for _, name := range namesOf(t, namespace, template, count) {
				if before, taken := there[name]; taken {
					t.Errorf("operation %d creates %s, which operation %d has created", op, name, before)
				}
				there[name] = op
			}
		}
		for i, op := range p.Ops {
			own := fmt.Sprintf("namespace-%d", i)
			switch op := op.(type) {
			case *workload.CreateNodes:
				create(i, "", op.Template, op.Count)
			case *workload.CreatePods:
				pods := op.Template
				if pods == nil {
					pods = p.DefaultPod
				}
				if op.Namespace != "" {
					own = op.Namespace
				}
				create(i, own, pods, op.Count)
			case *workload.CreateAny:
				create(i, op.Namespace, &op.Template, op.Count)
			case *workload.CreatePodGroups:
				create(i, op.Namespace, &op.Template, op.Count)
			case *workload.CreateResourceClaims:
				create(i, op.Namespace, &op.Template, op.Count)
			case *workload.UpdateAny:
				for _, name := range namesOf(t, op.Namespace, &op.Template, op.Count) {
					if _, ok := there[name]; !ok {
						t.Errorf("operation %d updates %s, which no operation created", i, name)
					}
				}
			}
		}
	})
}

// namesOf are the objects of a template that have names of their own.
func namesOf(t *testing.T, namespace string, template *workload.Template, count int) []string {
	t.Helper()
	if template == nil {
		return nil
	}
	manifest, err := template.Parse()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range count {
		text, err := manifest.Render(i, count)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		if object.Metadata.Name != "" {
			names = append(names, fmt.Sprintf("%s %s/%s", object.Kind, namespace, object.Metadata.Name))
		}
	}
	return names
}

// Catches: a namespace that is spelled in two ways, so that a barrier waits for nothing or a figure counts no pod.
func TestNamespacesThatAreNamedHavePods(t *testing.T) {
	plans(t, func(t *testing.T, _ *workload.Workload, p workload.Plan) {
		has := map[string]bool{"default": true} // namespace -> something is created in it
		for i, op := range p.Ops {
			switch op := op.(type) {
			case *workload.CreatePods:
				has[op.Namespace] = true
				if op.Namespace == "" {
					has[fmt.Sprintf("namespace-%d", i)] = true
				}
			case *workload.CreatePodGroups:
				has[op.Namespace] = true
			}
		}
		for i, op := range p.Ops {
			var named []string
			switch op := op.(type) {
			case *workload.Barrier:
				named = op.Namespaces
			case *workload.StartCollectingMetrics:
				named = op.Namespaces
			case *workload.WaitForPodGroups:
				named = op.Namespaces
			case *workload.DeletePods:
				named = []string{op.Namespace}
			}
			for _, name := range named {
				if !has[name] {
					t.Errorf("operation %d, %s: nothing is created in namespace %s", i, op.Opcode(), name)
				}
			}
		}
	})
}
