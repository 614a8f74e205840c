// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

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
		sub.Hosted = append(sub.Hosted, framework.Registration{Name: name, Factory: factory})
		at := i * len(plugins) / 3
		plugins = slices.Insert(plugins, at, scenario.Plugin{Name: name, Weight: int32(1 + i)})
	}
	want := sampling.Cases(t, 3000)
	r, err := diff.Run(upstream{diff.Upstream{Oracle: up}, c}, ours{sub, c}, diff.Options{
		Seed: sampling.Seed(t), Cases: want, Sizes: gen.DefaultSizes, MaxFailures: 3, Plugins: plugins,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("%s: %s", f.Scenario.Name, f.Difference)
	}
	if c.compared < want/2 {
		t.Errorf("calls were compared in %d of %d cases", c.compared, want)
	}
}
