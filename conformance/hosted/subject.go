// SPDX-License-Identifier: Apache-2.0

package hosted

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/kumiki"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Subject answers with kumiki's search, with some of upstream's plugins in place of native ones, and compares each
// answer with that of the native plugins.
type Subject struct {
	// Hosts reports whether a plugin is hosted in a scenario.
	Hosts func(s *scenario.Scenario, plugin string) bool
}

// Load implements diff.Subject.
func (sub Subject) Load(s *scenario.Scenario) (diff.Cluster, error) {
	ctx, stop := context.WithCancel(context.Background())
	c := &cluster{stop: stop, objects: oracle.NewObjects()}
	for _, o := range s.Objects {
		c.objects.Set(o.APIObject)
	}
	hosting := kumiki.Hosting{
		Plugins: Registrations(ctx, c.objects),
		As:      sub.as(s),
		Env:     framework.Env{Context: ctx, Informers: c.objects.Factory},
	}
	var err error
	if c.Cluster, err = (kumiki.Subject{Hosting: hosting}).Load(s); err == nil {
		c.native, err = kumiki.Subject{}.Load(s)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return c, nil
}

// as returns the names in the profile of a scenario.
func (sub Subject) as(s *scenario.Scenario) func(string) string {
	return func(plugin string) string {
		if sub.Hosts(s, plugin) {
			return Name(plugin)
		}
		return plugin
	}
}

// cluster is a cluster with hosted plugins, and the same with native ones.
type cluster struct {
	diff.Cluster // with hosted plugins
	native       diff.Cluster
	objects      *oracle.Objects // what the hosted plugins see
	stop         context.CancelFunc
}

// Decide implements diff.Cluster. Another answer of the native plugins is the message of the outcome.
func (c *cluster) Decide(pod *v1.Pod) *outcome.Outcome {
	out := c.Cluster.Decide(pod)
	restore(out)
	if d := diff.Compare(c.native.Decide(pod), out); d != "" {
		out.Message = fmt.Sprintf("(the first side is kumiki with native plugins) %s", d)
	}
	return out
}

// restore puts the plugins' own names back.
func restore(out *outcome.Outcome) {
	own := func(v *outcome.Verdict) {
		if v == nil {
			return
		}
		v.Plugin = Own(v.Plugin)
		for i, reason := range v.Reasons {
			v.Reasons[i] = Own(reason)
		}
	}
	own(out.Gate)
	own(out.PreFilter)
	for i := range out.Nodes {
		own(&out.Nodes[i])
	}
	for i := range out.Scores {
		out.Scores[i].Plugin = Own(out.Scores[i].Plugin)
	}
	for i, name := range out.Rejectors {
		out.Rejectors[i] = Own(name)
	}
	out.Message = Own(out.Message)
}

// SetNode implements diff.Cluster.
func (c *cluster) SetNode(n *v1.Node) {
	c.Cluster.SetNode(n)
	c.native.SetNode(n)
}

// DeleteNode implements diff.Cluster.
func (c *cluster) DeleteNode(name string) {
	c.Cluster.DeleteNode(name)
	c.native.DeleteNode(name)
}

// Bind implements diff.Cluster.
func (c *cluster) Bind(p *v1.Pod) {
	c.Cluster.Bind(p)
	c.native.Bind(p)
}

// SetObject implements diff.Cluster.
func (c *cluster) SetObject(o scenario.APIObject) {
	c.objects.Set(o)
	c.Cluster.SetObject(o)
	c.native.SetObject(o)
}

// DeleteObject implements diff.Cluster.
func (c *cluster) DeleteObject(ref scenario.ObjectRef) {
	c.objects.Delete(ref)
	c.Cluster.DeleteObject(ref)
	c.native.DeleteObject(ref)
}

// SetNominated implements diff.Cluster.
func (c *cluster) SetNominated(pods []*v1.Pod) {
	c.Cluster.SetNominated(pods)
	c.native.SetNominated(pods)
}

// Close implements diff.Cluster.
func (c *cluster) Close() {
	c.Cluster.Close()
	c.native.Close()
	c.stop()
}
