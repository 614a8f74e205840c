// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

// ResourceList makes a resource list from name, quantity, name, quantity ...
func ResourceList(pairs ...string) v1.ResourceList {
	if len(pairs) == 0 {
		return nil
	}
	l := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[v1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return l
}

type PodOption func(*v1.Pod)

// Pod makes a pending pod without containers.
func Pod(name string, options ...PodOption) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	for _, o := range options {
		o(p)
	}
	return p
}

// Requests adds a container with these requests.
func Requests(pairs ...string) PodOption {
	return func(p *v1.Pod) {
		name := fmt.Sprintf("c%d", len(p.Spec.Containers))
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name,
			Resources: v1.ResourceRequirements{Requests: ResourceList(pairs...)}})
	}
}

func InitRequests(pairs ...string) PodOption {
	return func(p *v1.Pod) {
		name := fmt.Sprintf("i%d", len(p.Spec.InitContainers))
		p.Spec.InitContainers = append(p.Spec.InitContainers,
			v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: ResourceList(pairs...)}})
	}
}

func Overhead(pairs ...string) PodOption {
	return func(p *v1.Pod) { p.Spec.Overhead = ResourceList(pairs...) }
}

func HostPort(ip string, protocol v1.Protocol, port int32) PodOption {
	return func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprintf("p%d", port),
			Ports: []v1.ContainerPort{{HostIP: ip, Protocol: protocol, HostPort: port}}})
	}
}

func Image(name string) PodOption {
	return func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name, Image: name}) }
}

func Toleration(key string, op v1.TolerationOperator, value string, effect v1.TaintEffect) PodOption {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: op, Value: value,
			Effect: effect})
	}
}

func NodeSelector(pairs ...string) PodOption {
	return func(p *v1.Pod) {
		p.Spec.NodeSelector = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Spec.NodeSelector[pairs[i]] = pairs[i+1]
		}
	}
}

func affinityOf(p *v1.Pod) *v1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
	}
	return p.Spec.Affinity.NodeAffinity
}

func RequiredAffinity(terms ...v1.NodeSelectorTerm) PodOption {
	return func(p *v1.Pod) {
		affinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: terms}
	}
}

func PreferredAffinity(weight int32, term v1.NodeSelectorTerm) PodOption {
	return func(p *v1.Pod) {
		a := affinityOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

func OnNode(name string) PodOption    { return func(p *v1.Pod) { p.Spec.NodeName = name } }
func Nominated(name string) PodOption { return func(p *v1.Pod) { p.Status.NominatedNodeName = name } }

func Expression(key string, op v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
	return v1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// Term makes a node selector term of match expressions.
func Term(exprs ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: exprs}
}

// FieldTerm makes a node selector term of match fields.
func FieldTerm(exprs ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: exprs}
}

type NodeOption func(*v1.Node)

// Node returns a node with no resources but a limit of 110 pods.
func Node(name string, options ...NodeOption) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1.NodeStatus{Allocatable: ResourceList("pods", "110")}}
	for _, o := range options {
		o(n)
	}
	return n
}

func Allocatable(pairs ...string) NodeOption {
	return func(n *v1.Node) {
		for name, q := range ResourceList(pairs...) { // order: each name is set alone
			n.Status.Allocatable[name] = q
		}
	}
}

func Labels(pairs ...string) NodeOption {
	return func(n *v1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func Taint(key, value string, effect v1.TaintEffect) NodeOption {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func Cordon(n *v1.Node) { n.Spec.Unschedulable = true }

func HasImage(image string, mebibytes int64) NodeOption {
	return func(n *v1.Node) {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{image}, SizeBytes: mebibytes << 20})
	}
}

// Cluster is a store with its intake.
type Cluster struct {
	Store  *cluster.Store
	Intake *convert.Intake
}

func NewCluster() *Cluster { return &Cluster{cluster.NewStore(), convert.NewIntake()} }

// With enters nodes, pods that are bound, and other objects.
func (w *Cluster) With(objects ...any) *Cluster {
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.Node:
			w.Store.SetNode(w.Intake.Node(o))
		case *v1.Pod:
			w.Store.SetPod(w.Intake.Pod(o))
		case cluster.Object:
			w.Store.SetObject(o)
		default:
			panic(fmt.Sprintf("world with %T", o))
		}
	}
	return w
}

func Must[P any](p P, err error) P {
	if err != nil {
		panic(err)
	}
	return p
}

func Features(features ...string) NodeOption {
	return func(n *v1.Node) { n.Status.DeclaredFeatures = features }
}

// NeedsFeatures is what intake makes of a pod that needs these features, sorted; "!x" makes it one of which intake
// cannot tell, because of x.
func NeedsFeatures(p *cluster.Pod, features ...string) *cluster.Pod {
	spec, is := *p.Spec, *p
	spec.Features, spec.FeaturesErr = features, ""
	if len(features) == 1 && features[0][0] == '!' {
		spec.Features, spec.FeaturesErr = nil, features[0][1:]
	}
	is.Spec = &spec
	return &is
}

func (w *Cluster) WithNamespaces(spaces ...*v1.Namespace) *Cluster {
	for _, ns := range spaces {
		w.Store.SetObject(ns)
	}
	return w
}

func InNamespace(ns string) PodOption { return func(p *v1.Pod) { p.Namespace = ns } }
