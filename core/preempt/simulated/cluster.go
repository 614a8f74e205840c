// SPDX-License-Identifier: Apache-2.0

// Package simulated owns a cluster in memory for the tests of core/preempt and the packages below it. Only tests
// import it.
package simulated

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Cluster is a store with nodes, pods and budgets, and a search for nodes over it.
type Cluster struct {
	Store       *cluster.Store
	Intake      *convert.Intake
	Placer      *place.Placer
	Nominations Nominations
}

// Nominations are the pods that are nominated to a node, by the name of the node.
type Nominations map[string][]*cluster.Pod

// NominatedOn returns the pods nominated to a node.
func (p Nominations) NominatedOn(node string) []*cluster.Pod { return p[node] }

// NominatedNodes returns the nodes with nominated pods, sorted.
func (p Nominations) NominatedNodes() (nodes []string) {
	for name := range p { // order: sorted below
		nodes = append(nodes, name)
	}
	slices.Sort(nodes)
	return nodes
}

// NoMeter measures nothing.
type NoMeter struct{}

// Plugin does nothing.
func (NoMeter) Plugin(plugin.Point, string) {}

// Did does nothing.
func (NoMeter) Did(record.Work, int) {}

// NewCluster returns a cluster without nodes. Its Placer has the default filters and no scorers.
func NewCluster() *Cluster {
	c := &Cluster{Store: cluster.NewStore(), Intake: convert.NewIntake(), Nominations: Nominations{}}
	c.Placer = place.New(filterProfile(), NoMeter{}, place.DefaultClassBytes)
	return c
}

// OnePodPerNode makes each node take one pod, whatever the pod requests.
func (c *Cluster) OnePodPerNode() {
	prof := filterProfile()
	for i, f := range prof.Filters {
		if f.Name() == resources.NodeResourcesFitName {
			prof.Filters[i] = resources.NodeSlots{}
		}
	}
	c.Placer = place.New(prof, NoMeter{}, place.DefaultClassBytes)
}

func filterProfile() place.Profile {
	var prof place.Profile
	plugins.EachDefault(func(pl plugin.Plugin, _ int64) {
		if f, ok := pl.(plugin.Filter); ok {
			prof.Filters = append(prof.Filters, f)
		}
	})
	return prof
}

// Change runs f in a transaction of the store.
func (c *Cluster) Change(f func()) {
	c.Store.Begin()
	f()
	c.Store.Commit()
}

// SetNode adds or replaces a node with so many cores, 16 GiB and a limit of pods, in a zone.
func (c *Cluster) SetNode(name string, cores, pods int64, zone string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"zone": zone, v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    *apiresource.NewQuantity(cores, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(16<<30, apiresource.BinarySI),
		v1.ResourcePods:   *apiresource.NewQuantity(pods, apiresource.DecimalSI),
	}
	c.Change(func() { c.Store.SetNode(c.Intake.Node(n)) })
}

// Pod returns a pod that requests cores.
func Pod(name string, priority int32, cores int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	p.Spec.Priority = &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: *apiresource.NewQuantity(cores, apiresource.DecimalSI)}}}}
	return p
}

// Started sets when a pod started, in seconds, and returns it.
func Started(p *v1.Pod, at int64) *v1.Pod {
	p.Status.StartTime = &metav1.Time{Time: metav1.Unix(at, 0).Time}
	return p
}

// Bind sets a pod that is bound to a node.
func (c *Cluster) Bind(node string, p *v1.Pod) {
	p.Spec.NodeName = node
	c.Change(func() { c.Store.SetPod(c.Intake.Pod(p)) })
}

// SetBudget sets a disruption budget that selects pods by labels.
func (c *Cluster) SetBudget(name string, allowed int32, labels map[string]string) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	b.Status.DisruptionsAllowed = allowed
	c.Change(func() { c.Store.SetObject(b) })
}

// Labelled gives a pod the label app and returns it.
func Labelled(p *v1.Pod, app string) *v1.Pod {
	p.Labels = map[string]string{"app": app}
	return p
}
