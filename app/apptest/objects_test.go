// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// classes is a custom plugin that reads objects of two kinds: it accepts the nodes of the storage class "pool", which
// its provisioner names, and rejects all nodes if the namespace of the pod is labelled as closed.
type classes struct{}

func (classes) Name() string { return "Classes" }

func (classes) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if n, ok := cluster.Find[*v1.Namespace](s, "", p.Namespace); ok && n.Labels["closed"] != "" {
		return plugin.FilterPlan{Reject: "the namespace is closed"}
	}
	return plugin.FilterPlan{Filter: plugin.FilterByNode(classFilter{})}
}

// Wakes declares storage classes.
func (classes) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.StorageClassObject, Action: plugin.All}}}
}

// Kinds declares namespaces, whose changes wake no pods.
func (classes) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNamespace} }

type classFilter struct{}

func (classFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if c, ok := cluster.Find[*storagev1.StorageClass](s, "", "pool"); ok && c.Provisioner == v.Node.Name {
		return plugin.Fit
	}
	return 1
}

func (classFilter) Reasons(plugin.Code) []string { return []string{"node(s) had no pool"} }

// onlyClasses is a profile without default plugins that read objects.
const onlyClasses = "- plugins: {multiPoint: {enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, " +
	"{name: DefaultBinder}, {name: Classes}], disabled: [{name: '*'}]}}\n"

// TestScenarioWithObjects: a custom plugin finds the objects of the kinds that it declares, their events wake pods, and
// an object of another kind is a mistake in the scenario.
func TestScenarioWithObjects(t *testing.T) {
	plugins, err := app.NewPlugins(plugin.WithoutArgs(classes{}))
	if err != nil {
		t.Fatal(err)
	}
	file := configuration(t, onlyClasses)
	want := `node a
node b
pod first
  first waits: 0/2 nodes are available: 2 node(s) had no pool.
object StorageClass pool {provisioner: b}
  first runs on b, 1 of 2 nodes fit, score 97
object Namespace default {metadata: {labels: {closed: "yes"}}}
pod second
  second waits: 0/2 nodes are available: the namespace is closed.
object-gone Namespace default
object StorageClass pool {provisioner: a}
  second runs on a, 1 of 2 nodes fit, score 97
object-gone StorageClass pool
pod third
  third waits: 0/2 nodes are available: 2 node(s) had no pool.
`
	var script strings.Builder
	for line := range strings.Lines(want) {
		if !strings.HasPrefix(line, " ") {
			script.WriteString(line)
		}
	}
	if got, err := Play(plugins, file, script.String()); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	for script, want := range map[string]string{
		"object Service default/s": "line 1: object of kind Service: no plugin of the configuration reads it, so it is " +
			"not watched; read are [DeviceClass Namespace StorageClass]",
		"object-gone Service default/s":       "not watched",
		"object StorageClass":                 "object StorageClass: without a name",
		"object StorageClass c {provisoner:}": `object StorageClass c: error unmarshaling`,
	} {
		if _, err := Play(plugins, file, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
}
