// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/kumiki"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// counted compares the calls of plugins in both schedulers.
type counted struct {
	now      Calls // where calls are counted; nil for nowhere
	up, our  Calls // of the last decision
	compared int
}

// upstream counts calls while upstream decides.
type upstream struct {
	diff.Upstream
	c *counted
}

func (u upstream) Load(s *scenario.Scenario) (diff.Cluster, error) {
	cl, err := u.Upstream.Load(s)
	return &upCluster{cl, u.c}, err
}

type upCluster struct {
	diff.Cluster
	c *counted
}

func (u *upCluster) Decide(p *v1.Pod) *outcome.Outcome {
	u.c.up = Calls{}
	u.c.now = u.c.up
	defer func() { u.c.now = nil }()
	return u.Cluster.Decide(p)
}

// ours counts calls until kumiki has placed the pod.
type ours struct {
	kumiki.Subject
	c *counted
}

func (o ours) Load(s *scenario.Scenario) (diff.Cluster, error) {
	cl, err := o.Subject.Load(s)
	return &ourCluster{cl, o.c}, err
}

type ourCluster struct {
	diff.Cluster
	c *counted
}

// Decide reports other calls than upstream's as the message of the outcome.
func (o *ourCluster) Decide(p *v1.Pod) *outcome.Outcome {
	o.c.our = Calls{}
	o.c.now = o.c.our
	defer func() { o.c.now = nil }()
	out := o.Cluster.Decide(p)
	if out.PreFilter != nil && out.PreFilter.Code == outcome.Failed {
		return out // upstream looks at the other nodes; kumiki stops at the error
	}
	if strings.HasPrefix(out.Message, "running ") {
		return out // which plugin fails is compared; others may have been called or not
	}
	o.c.compared++
	if d := o.c.difference(); d != "" {
		out.Message = "calls differ: " + d
	}
	return out
}

// difference returns the first call that one side makes and the other does not. The oracle calls Score once more to
// read raw scores.
func (c *counted) difference() string {
	keys := maps.Clone(c.up)
	maps.Copy(keys, c.our)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		up, our := c.up[key], c.our[key]
		if strings.Contains(key, " Score ") {
			up = min(up, 1)
		}
		if up != our {
			return fmt.Sprintf("%s: upstream %d, kumiki %d", key, up, our)
		}
	}
	return ""
}

// nominate nominates a third of the pods to a node, half of them with another pod that goes before them there: plugins
// are called more than once for such a node. In half of the scenarios, Filter draws by its calls before.
func nominate(s *scenario.Scenario) {
	counts := hash(s.Name)%2 == 0
	first := func(pods []*v1.Pod) {
		for i, p := range pods {
			if counts {
				pods[i] = p.DeepCopy()
				pods[i].Spec.Priority = new(int32(math.MaxInt32))
			}
		}
	}
	first(s.Nominated)
	for i := range s.Asks {
		a, draw := &s.Asks[i], hash(s.Name, i)
		first(a.Nominate)
		a.Pod = a.Pod.DeepCopy()
		if counts {
			metav1.SetMetaDataAnnotation(&a.Pod.ObjectMeta, counting, "yes")
		}
		if draw%3 != 0 {
			continue
		}
		node := s.Nodes[draw/6%len(s.Nodes)].Name
		a.Pod.Status.NominatedNodeName = node
		if draw%2 == 0 && !diff.StatesOverflow(a.Pod) { // upstream reads other amounts of such a pod
			other := a.Pod.DeepCopy()
			other.Name, other.UID, other.Spec.NodeName = fmt.Sprint("expected-", i), types.UID(fmt.Sprint("expected-", i)), ""
			other.Spec.Priority = new(int32(math.MaxInt32))
			a.Nominate = append(a.Nominate, other)
		}
	}
}

func hash(of ...any) int {
	h := fnv.New32a()
	fmt.Fprint(h, of...)
	return int(h.Sum32() >> 8)
}

// TestConformanceRandomPlugins asks upstream's framework and kumiki the same questions, with three random plugins
// among upstream's default ones: which nodes fit, who rejects the others and why, all scores, and the calls of the
// plugins are equal.
func TestConformanceRandomPlugins(t *testing.T) {
	c := &counted{}
	up := oracle.New()
	t.Cleanup(up.Close)
	sub := kumiki.Subject{Placed: func() { c.now = nil }}
	plugins := gen.DefaultPlugins()
	for i := range 3 {
		name := fmt.Sprintf("Random%d", i)
		factory := Factory(name, sampling.Seed(t), func() Calls { return c.now })
		up.Register(name, factory)
		sub.Hosting.Plugins = append(sub.Hosting.Plugins, framework.Registration{Name: name, Factory: factory})
		at := i * len(plugins) / 3
		plugins = slices.Insert(plugins, at, scenario.Plugin{Name: name, Weight: int32(1 + i)})
	}
	want := sampling.Cases(t, 3000)
	r, err := diff.Run(upstream{diff.Upstream{Oracle: up}, c}, ours{sub, c}, diff.Options{
		Seed: sampling.Seed(t), Cases: want, Sizes: gen.DefaultSizes, MaxFailures: 3, Plugins: plugins,
		First: sampling.First(t), Adjust: nominate,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("%s: %s", f.Scenario.Name, f.Difference)
	}
	t.Logf("%d cases of seed %d, clusters %d to %d", r.Cases, sampling.Seed(t), sampling.First(t), r.Next-1)
	if c.compared < want/2 {
		t.Errorf("calls were compared in %d of %d cases", c.compared, want)
	}
}
