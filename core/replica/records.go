// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// The records of package cluster in binary form. Not sent: API objects that hosted plugins read (Pod.Full, Node.Full),
// and what only kube reads (Pod.Limits, GangMark.Unread).

// optional writes a part of a record that is there.
type optional struct {
	there bool
	write func()
}

// parts writes which parts of a record are there, and then these.
func (c *coder) parts(all ...optional) {
	var there [64]bool
	for i, part := range all {
		there[i] = part.there
	}
	b := c.bits(there[:len(all)]...)
	for i, part := range all {
		if b.has(i) {
			part.write()
		}
	}
}

func (c *coder) pod(p *cluster.Pod) {
	c.uid(&p.UID)
	name(c, &p.Namespace)
	c.text(&p.Name)
	c.version(&p.ResourceVersion)
	name(c, &p.NodeName)
	c.spec(&p.Spec)
	b := c.bits(p.Terminating, p.Preempted, p.EvictionPending, p.Owned, p.OfNode)
	if c.reads {
		p.Terminating, p.Preempted, p.EvictionPending = b.has(0), b.has(1), b.has(2)
		p.Owned, p.OfNode = b.has(3), b.has(4)
	}
	c.parts(
		optional{p.Created != 0, func() { c.time(&p.Created) }},
		optional{p.Start != 0, func() { c.time(&p.Start) }},
		optional{p.Owner != 0, func() { c.uint(&p.Owner) }},
		optional{p.Generation != 0, func() { c.int64(&p.Generation) }},
		optional{p.Nominated != "", func() { name(c, &p.Nominated) }},
		optional{p.GoneBy != 0, func() { c.time(&p.GoneBy) }},
		optional{p.DeletedAt != 0, func() { c.time(&p.DeletedAt) }},
		optional{p.RunsAtMost != 0, func() { c.time(&p.RunsAtMost) }},
		optional{p.Expected != 0, func() { c.time(&p.Expected) }},
		optional{p.ClaimsHash != 0, func() { c.uint(&p.ClaimsHash) }},
		optional{p.Claims != nil, func() { blob(c, pointer(c, &p.Claims)) }},
		optional{p.Condition != cluster.Condition{}, func() {
			name(c, &p.Condition.Reason)
			c.text(&p.Condition.Message)
			c.int64(&p.Condition.Generation)
		}},
		optional{p.UnschedulableSince != 0, func() { c.time(&p.UnschedulableSince) }},
		optional{p.Gang != nil, func() { c.mark(pointer(c, &p.Gang)) }},
		optional{p.Bound != nil, func() {
			bound := pointer(c, &p.Bound)
			c.uint(&bound.Decision)
			c.int(&bound.Quorum)
		}},
	)
	if c.reads && c.err == nil {
		c.share.ShareMarks(p)
	}
}

// pointer returns what a pointer points to; for a coder that reads, a new value.
func pointer[T any](c *coder, p **T) *T {
	if c.reads {
		*p = new(T)
	}
	return *p
}

func (c *coder) mark(m *cluster.GangMark) {
	name(c, &m.Key.Source)
	name(c, &m.Key.Namespace)
	name(c, &m.Key.Name)
	c.int(&m.Size)
	c.int(&m.Desired)
	c.time(&m.Timeout)
	c.text(&m.Bad)
}

// spec writes the number of a spec, and the spec if it is new.
func (c *coder) spec(p **cluster.PodSpec) {
	ref := uint64(defined)
	if !c.reads {
		if i, in := c.specs.number(*p); in {
			ref = uint64(i) + inRing
		}
	}
	switch c.uint(&ref); {
	case ref == defined:
		s := pointer(c, p)
		if c.specFields(s); c.err != nil {
			return
		}
		if c.reads {
			s = c.share.Share(s)
			*p = s
		}
		c.specs.define(s)
	case c.reads && ref >= inRing && ref-inRing < uint64(len(c.specs.of)):
		*p = c.specs.of[ref-inRing]
	case c.reads:
		c.fail("spec %d of a dictionary of %d", ref-inRing, len(c.specs.of))
	}
}

// specRest is the part of a spec that few pods have.
type specRest struct {
	Required     *v1.NodeSelector
	Preferred    []v1.PreferredSchedulingTerm
	Spread       []v1.TopologySpreadConstraint
	Affinity     *v1.PodAffinity
	AntiAffinity *v1.PodAntiAffinity
	Volumes      []v1.Volume
	Devices      *cluster.Devices
}

func (c *coder) specFields(s *cluster.PodSpec) {
	name(c, &s.SchedulerName)
	c.int32(&s.Priority)
	pairs(c, &s.Labels)
	c.amounts(&s.Request)
	rest := specRest{Required: s.Required, Preferred: s.Preferred, Spread: s.Spread, Affinity: s.PodAffinity,
		AntiAffinity: s.PodAntiAffinity, Volumes: s.Volumes, Devices: s.Devices}
	has := rest.Required != nil || rest.Preferred != nil || rest.Spread != nil || rest.Affinity != nil ||
		rest.AntiAffinity != nil || rest.Volumes != nil || rest.Devices != nil
	b := c.bits(s.NeverPreempts, s.Held.Equal(&s.Request), s.Scored.Equal(&s.Request), has)
	if c.reads {
		s.NeverPreempts = b.has(0)
	}
	for i, a := range []*resource.Amounts{&s.Held, &s.Scored} {
		switch {
		case !b.has(1 + i):
			c.amounts(a)
		case c.reads:
			*a = s.Request
		}
	}
	for _, v := range []*int64{&s.HeldNonZero[0], &s.HeldNonZero[1], &s.ScoreNonZero[0], &s.ScoreNonZero[1]} {
		c.int64(v)
	}
	name(c, &s.NodeName)
	pairs(c, &s.NodeSelector)
	list(c, &s.Tolerations, func(t *v1.Toleration) {
		name(c, &t.Key)
		name(c, &t.Operator)
		name(c, &t.Value)
		name(c, &t.Effect)
		c.parts(optional{t.TolerationSeconds != nil, func() { c.int64(pointer(c, &t.TolerationSeconds)) }})
	})
	list(c, &s.Ports, func(p *cluster.HostPort) {
		name(c, &p.IP)
		name(c, &p.Protocol)
		c.int32(&p.Port)
	})
	names(c, &s.Gates)
	names(c, &s.Images)
	name(c, &s.Controller.APIVersion)
	name(c, &s.Controller.Kind)
	name(c, &s.Controller.Name)
	names(c, &s.Features)
	c.text(&s.FeaturesErr)
	if b.has(3) {
		blob(c, &rest)
	}
	if c.reads {
		s.Required, s.Preferred, s.Spread, s.Volumes, s.Devices = rest.Required, rest.Preferred, rest.Spread,
			rest.Volumes, rest.Devices
		s.PodAffinity, s.PodAntiAffinity = rest.Affinity, rest.AntiAffinity
	}
}

func (c *coder) amounts(a *resource.Amounts) {
	for _, v := range []*int64{&a.MilliCPU, &a.Memory, &a.Ephemeral, &a.Pods} {
		c.int64(v)
	}
	list(c, &a.Scalars, func(s *resource.Scalar) {
		name(c, &s.Name)
		c.int64(&s.Value)
	})
}

func (c *coder) node(n *cluster.Node) {
	name(c, &n.Name)
	c.uid((*cluster.UID)(&n.UID))
	pairs(c, &n.Labels)
	list(c, &n.Taints, func(t *v1.Taint) {
		name(c, &t.Key)
		name(c, &t.Value)
		name(c, &t.Effect)
		c.parts(optional{t.TimeAdded != nil, func() {
			at := pointer(c, &t.TimeAdded)
			var seconds int64
			if !c.reads {
				seconds = at.Unix()
			}
			if c.int64(&seconds); c.reads {
				*at = metav1.Unix(seconds, 0) // the API has whole seconds
			}
		}})
	})
	b := c.bits(n.Unschedulable)
	if c.reads {
		n.Unschedulable = b.has(0)
	}
	c.amounts(&n.Allocatable)
	list(c, &n.Images, func(img *cluster.Image) {
		names(c, &img.Names)
		c.int64(&img.Size)
	})
	names(c, &n.Features)
	c.uint(&n.ConditionsHash)
	c.uint(&n.AnnotationsHash)
}

// marshaler is an API object with a binary form.
type marshaler interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// object writes an object: those of the API in the API's binary form, gangs as JSON.
func (c *coder) object(obj *cluster.Object) {
	var kind cluster.Kind
	var s string
	if !c.reads {
		kind = cluster.KindOf(*obj)
		raw, err := marshal(*obj)
		if err != nil {
			panic("replica: writing " + string(kind) + ": " + err.Error()) // plain data always marshals
		}
		s = string(raw)
	}
	name(c, &kind)
	c.text(&s)
	if !c.reads || c.err != nil {
		return
	}
	if *obj = cluster.EmptyObject(kind); *obj == nil {
		c.fail("an object of kind %q", kind)
		return
	}
	if err := unmarshal([]byte(s), *obj); err != nil {
		c.fail("%s: %w", kind, err)
	}
}

func marshal(obj cluster.Object) ([]byte, error) {
	if m, is := ofAPI(obj); is {
		return m.Marshal()
	}
	return json.Marshal(obj)
}

func unmarshal(raw []byte, obj cluster.Object) error {
	if m, is := ofAPI(obj); is {
		return m.Unmarshal(raw)
	}
	return json.Unmarshal(raw, obj)
}

// ofAPI returns an object of the API. A gang is none, and has the binary form of its metadata alone.
func ofAPI(obj cluster.Object) (marshaler, bool) {
	if _, is := obj.(*cluster.Gang); is {
		return nil, false
	}
	m, is := obj.(marshaler)
	return m, is
}
