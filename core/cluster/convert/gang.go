// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"weak"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The labels and annotations of pods that declare a gang, by source.
const (
	gangAnnotation     = "pod_group"
	gangSizeAnnotation = "pod_group_size"
	gangMinAnnotation  = "pod_group_min_size"
	sigsLabel          = "scheduling.x-k8s.io/pod-group"
	volcanoAnnotation  = "scheduling.k8s.io/group-name"
)

// The annotations that a binding leaves on the members of a gang.
const (
	GangBoundAnnotation    = "kumiki.dev/gang"
	GangDecisionAnnotation = "kumiki.dev/gang-decision"
	GangQuorumAnnotation   = "kumiki.dev/gang-quorum"
)

// MaxGangSize bounds the number of pods that a gang may declare: the pods of the largest cluster that Kubernetes
// supports. A larger size is invalid and is reported.
const MaxGangSize = 150_000

// maxGangName is the maximum length of an object's name, and of a gang's name from any source.
const maxGangName = 253

// GangRules define which declarations of gangs count. The zero value counts none: every pod is a gang of one.
type GangRules struct {
	Group, Annotation, Sigs, Volcano bool
	// Pfnet is the prefix of the annotations; empty if they do not count.
	Pfnet string
	// GroupIfRead: Group counts only while the scheduler can read its API; the Unread field of each mark has what
	// counts otherwise.
	GroupIfRead bool
	// GroupPolicy: preemptionPolicy of pod groups counts (upstream: gate PodGroupPreemptionPolicy).
	GroupPolicy bool
	// Evictable: pods can declare that they may be evicted for gangs, by EvictableAnnotation or by one of
	// EvictableClasses, names of PriorityClasses.
	Evictable        bool
	EvictableClasses []string
}

// DeclareGangs sets which declarations of gangs count. Call it before the first pod.
func (in *Intake) DeclareGangs(r GangRules) { in.gangs = r }

// claimed is the declaration of one source on a pod.
type claimed struct {
	source cluster.GangSource
	name   string
	size   int // minimum number of pods; 0: not declared
	all    int // desired number of pods, if more than the minimum; 0: not declared
	wait   record.Time
	bad    string // why it is invalid
}

// DeclaredGangs returns the names of the gangs that a pod declares by the rules, in the order of the sources. Several
// names are possible; such a pod waits.
func DeclaredGangs(p *v1.Pod, rules GangRules) (names []string) {
	in := Intake{gangs: rules}
	for _, c := range in.claims(p) {
		if c.name != "" && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// gangMark returns a pod's declaration of its gang, nil if it has none that counts.
func (in *Intake) gangMark(p *v1.Pod) *cluster.GangMark {
	all := in.claims(p)
	if len(all) == 0 {
		return nil
	}
	mark := markOf(p.Namespace, all)
	if in.gangs.GroupIfRead && all[0].source == cluster.GangOfGroup {
		if rest := all[1:]; len(rest) > 0 {
			mark.Unread = in.marks.share(markOf(p.Namespace, rest))
		}
	}
	return in.marks.share(mark)
}

// claims returns the declarations that count, those with objects first, because an object declares more than a pod
// can.
func (in *Intake) claims(p *v1.Pod) (all []claimed) {
	say := func(c claimed) {
		if c.name != "" || c.bad != "" {
			all = append(all, c)
		}
	}
	if g := p.Spec.SchedulingGroup; in.gangs.Group && g != nil && g.PodGroupName != nil {
		say(claimed{source: cluster.GangOfGroup, name: *g.PodGroupName})
	}
	if in.gangs.Sigs {
		say(claimed{source: cluster.GangOfSigs, name: p.Labels[sigsLabel]})
	}
	if in.gangs.Volcano {
		say(claimed{source: cluster.GangOfVolcano, name: p.Annotations[volcanoAnnotation]})
	}
	if in.gangs.Annotation {
		say(elastic(p, claimed{source: cluster.GangOfAnnotation, name: p.Annotations[gangAnnotation]}))
	}
	if prefix := in.gangs.Pfnet; prefix != "" {
		// Without a size, and with a size of one, the pod is in no gang (upstream: pfnet/scheduler-plugins,
		// name_spec.go).
		c := sized(p, claimed{source: cluster.GangOfPfnet, name: p.Annotations[prefix+"-name"]}, prefix+"-size")
		if c.size > 1 || c.bad != "" {
			say(patient(p, c, prefix+"-schedule-timeout-seconds"))
		}
	}
	return all
}

// sized reads the size of a gang from an annotation. An empty one declares nothing, as an empty name does.
func sized(p *v1.Pod, c claimed, key string) claimed {
	text := p.Annotations[key]
	if c.name == "" || text == "" {
		return c
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		c.bad = fmt.Sprintf("annotation %s is no number of pods: %q", key, short(text))
	case n < 1:
		c.bad = fmt.Sprintf("annotation %s must be above 0, it is %d", key, n)
	case n > MaxGangSize:
		c.bad = fmt.Sprintf("annotation %s must be at most %d, it is %d", key, MaxGangSize, n)
	default:
		c.size = int(n)
	}
	return c
}

// elastic reads the sizes of a gang that annotations alone declare. With two sizes the smaller one is the minimum and
// the other the desired number of pods.
func elastic(p *v1.Pod, c claimed) claimed {
	c = sized(p, c, gangSizeAnnotation)
	least := sized(p, claimed{name: c.name}, gangMinAnnotation)
	switch {
	case c.bad != "" || least.size == 0 && least.bad == "":
	case least.bad != "":
		c.bad = least.bad
	case c.size != 0 && least.size > c.size:
		c.bad = fmt.Sprintf("annotation %s must be at most %d, as %s says, it is %d", gangMinAnnotation, c.size,
			gangSizeAnnotation, least.size)
	default:
		c.size, c.all = least.size, c.size
	}
	return c
}

// MaxGangTimeout bounds the time for which a gang may declare that its members wait for each other.
const MaxGangTimeout = 24 * 60 * 60 * record.Second

// patient reads how long members wait for each other.
func patient(p *v1.Pod, c claimed, key string) claimed {
	text := p.Annotations[key]
	if c.bad != "" || text == "" {
		return c
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if most := int64(MaxGangTimeout / record.Second); err != nil || n < 1 || n > most {
		c.bad = fmt.Sprintf("annotation %s must be a number of seconds from 1 to %d, it is %q", key, most, short(text))
		return c
	}
	c.wait = record.Time(n) * record.Second
	return c
}

// markOf joins the declarations of all sources. The first one names the gang; the others must not contradict it.
func markOf(namespace string, all []claimed) cluster.GangMark {
	first := all[0]
	mark := cluster.GangMark{Key: cluster.GangKey{Source: first.source, Namespace: namespace, Name: first.name}}
	if len(first.name) > maxGangName {
		mark.Key.Name = short(first.name)
		mark.Bad = fmt.Sprintf("the name of its gang (%s) is %d bytes long, at most %d are allowed", first.source,
			len(first.name), maxGangName)
		return mark
	}
	sizer := first
	for _, c := range all {
		switch {
		case c.bad != "":
			mark.Bad = c.bad
		case c.name != first.name:
			mark.Bad = fmt.Sprintf("two declarations disagree: its gang is %q by %s and %q by %s", first.name,
				first.source, short(c.name), c.source)
		case c.size != 0 && mark.Size != 0 && c.size != mark.Size:
			mark.Bad = fmt.Sprintf("two declarations disagree: gang %q needs %d pods by %s and %d by %s", first.name,
				mark.Size, sizer.source, c.size, c.source)
		case c.size != 0:
			mark.Size, sizer = c.size, c
		}
		if mark.Bad != "" {
			mark.Size, mark.Desired, mark.Timeout = 0, 0, 0
			return mark
		}
		mark.Desired, mark.Timeout = max(mark.Desired, c.all), max(mark.Timeout, c.wait)
	}
	return mark
}

// short truncates text of unknown length for messages.
func short(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// boundMark reads the annotations that the binding left on a member; nil if there are none that can be parsed.
func (in *Intake) boundMark(p *v1.Pod, mark *cluster.GangMark) *cluster.BoundMark {
	if mark == nil || p.Spec.NodeName == "" || p.Annotations[GangBoundAnnotation] != mark.Key.Name {
		return nil
	}
	decision, err := strconv.ParseUint(p.Annotations[GangDecisionAnnotation], 10, 64)
	quorum, err2 := strconv.ParseInt(p.Annotations[GangQuorumAnnotation], 10, 64)
	if err != nil || err2 != nil || quorum < 1 || quorum > MaxGangSize {
		return nil
	}
	return in.bounds.share(cluster.BoundMark{Decision: decision, Quorum: int(quorum)})
}

// sharing keeps one copy of each value while some pod uses it.
type sharing[T comparable] struct {
	known map[T]weak.Pointer[T] // value -> the copy in use, or a dead pointer until swept
	sweep int                   // sweep dead pointers when known grows past this
}

func newSharing[T comparable]() sharing[T] { return sharing[T]{map[T]weak.Pointer[T]{}, 1024} }

func (s *sharing[T]) share(value T) *T {
	if known := s.known[value].Value(); known != nil {
		return known
	}
	if len(s.known) >= s.sweep {
		for v, p := range s.known { // order: each entry is handled on its own
			if p.Value() == nil {
				delete(s.known, v)
			}
		}
		s.sweep = max(1024, 2*len(s.known))
	}
	fresh := &value
	s.known[value] = weak.Make(fresh)
	return fresh
}

// ShareMarks makes a pod that did not pass through Pod, for example one from a recording, share its marks like one
// that did.
func (in *Intake) ShareMarks(p *cluster.Pod) {
	if p.Gang != nil {
		p.Gang = in.marks.share(*p.Gang)
	}
	if p.Bound != nil {
		p.Bound = in.bounds.share(*p.Bound)
	}
}
