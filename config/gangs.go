// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Switch is a setting that is on, off or automatic.
type Switch string

// The values of Switch.
const (
	On  Switch = "On"
	Off Switch = "Off"
	// Auto is on while the API behind it is served and readable.
	Auto Switch = "Auto"
)

// UnmarshalJSON accepts true and false too: YAML reads unquoted On and Off as booleans. Other values are reported
// later, with their position.
func (s *Switch) UnmarshalJSON(raw []byte) error {
	var on bool
	if json.Unmarshal(raw, &on) == nil {
		if *s = Off; on {
			*s = On
		}
		return nil
	}
	if json.Unmarshal(raw, (*string)(s)) != nil {
		*s = Switch(raw)
	}
	return nil
}

// Gangs defines which declarations of gangs count, for all profiles. The zero value is not valid.
type Gangs struct {
	// PodGroup is the native API; it may be Auto.
	PodGroup Switch
	// Annotation is pod_group, Sigs the PodGroup of scheduler-plugins, Volcano that of Volcano.
	Annotation, Sigs, Volcano Switch
	// Pfnet is the prefix of the annotations of pfnet's gangs; empty if they do not count.
	Pfnet string
	// Hold defines when capacity is reserved for a blocked gang.
	Hold Hold
	// ScaleUp limits how long a blocked gang requests nodes from an autoscaler.
	ScaleUp ScaleUp
}

// ScaleUp is how long a blocked gang requests nodes, and the pause before it does again; For is 0 if there is no limit.
type ScaleUp struct{ For, Pause time.Duration }

// Hold is how long a gang must have been blocked before capacity is reserved for it, and the maximum time of the
// reservation; For is 0 if none is reserved.
type Hold struct {
	After, For time.Duration
	// Backfill is On if pods that end before the gang can start may use what is reserved; On or Off.
	Backfill Switch
	// EvictableClasses are PriorityClasses whose pods may use what is reserved, because they may be evicted for gangs.
	EvictableClasses []string
}

// The defaults and the bounds of Hold and ScaleUp.
const (
	DefaultHoldAfter = 10 * time.Second
	DefaultHoldFor   = 5 * time.Minute
	longestHold      = 24 * time.Hour

	DefaultScaleUpPause = 30 * time.Minute
)

// DefaultGangs returns the default of a drop-in replacement: native pod groups if the API is served, and nothing
// else.
func DefaultGangs() Gangs {
	return Gangs{PodGroup: Auto, Annotation: Off, Sigs: Off, Volcano: Off,
		Hold:    Hold{After: DefaultHoldAfter, For: DefaultHoldFor, Backfill: On},
		ScaleUp: ScaleUp{0, DefaultScaleUpPause}}
}

// DefaultPfnetPrefix is the prefix in the documentation of pfnet's plugin, which itself has no default.
const DefaultPfnetPrefix = "gang-scheduling.preferred.jp/gang"

// GangsArgs is the form of Gangs in a file.
type GangsArgs struct {
	PodGroup   *Switch      `json:"podgroup,omitempty"`
	Annotation *Switch      `json:"annotation,omitempty"`
	Sigs       *Switch      `json:"sigs,omitempty"`
	Volcano    *Switch      `json:"volcano,omitempty"`
	Pfnet      *PfnetArgs   `json:"pfnet,omitempty"`
	Hold       *HoldArgs    `json:"hold,omitempty"`
	ScaleUp    *ScaleUpArgs `json:"scaleUp,omitempty"`
}

// ScaleUpArgs is the form of ScaleUp in a file.
type ScaleUpArgs struct {
	For   *metav1.Duration `json:"for,omitempty"`
	Pause *metav1.Duration `json:"pause,omitempty"`
}

// HoldArgs is the form of Hold in a file.
type HoldArgs struct {
	After *metav1.Duration `json:"after,omitempty"`
	For   *metav1.Duration `json:"for,omitempty"`
	// Backfill is whether pods that end before the gang can start may use what is reserved.
	Backfill *Switch `json:"backfill,omitempty"`
	// EvictablePriorityClasses are names of PriorityClasses whose pods may be evicted for gangs of their priority or
	// more, and use what is reserved until then.
	EvictablePriorityClasses []string `json:"evictablePriorityClasses,omitempty"`
}

// PfnetArgs enables the annotations of pfnet's gangs: <prefix>-name and <prefix>-size.
type PfnetArgs struct {
	Prefix *string `json:"prefix,omitempty"`
}

// gangs resolves what a profile says of gangs.
func (r *report) gangs(path string, args *GangsArgs) Gangs {
	out := DefaultGangs()
	for _, one := range []struct {
		name string
		said *Switch
		into *Switch
		auto bool
	}{
		{"podgroup", args.PodGroup, &out.PodGroup, true}, {"annotation", args.Annotation, &out.Annotation, false},
		{"sigs", args.Sigs, &out.Sigs, false}, {"volcano", args.Volcano, &out.Volcano, false},
	} {
		switch {
		case one.said == nil:
		case *one.said == On, *one.said == Off, *one.said == Auto && one.auto:
			*one.into = *one.said
		case one.auto:
			r.add(path+"."+one.name, "must be Auto, On or Off, got %q", *one.said)
		default:
			r.add(path+"."+one.name, "must be On or Off, got %q", *one.said)
		}
	}
	if args.Pfnet != nil {
		out.Pfnet = orDefault(args.Pfnet.Prefix, DefaultPfnetPrefix)
		if problems := validation.IsQualifiedName(out.Pfnet + "-name"); len(problems) > 0 || out.Pfnet == "" {
			r.add(path+".pfnet.prefix", "is not what the name of an annotation can begin with, got %q: %s", out.Pfnet,
				strings.Join(problems, "; "))
		}
	}
	if args.Hold != nil {
		r.hold(path+".hold", args.Hold, &out.Hold)
	}
	if args.ScaleUp != nil {
		r.scaleUp(path+".scaleUp", args.ScaleUp, &out.ScaleUp)
	}
	return out
}

// hold resolves when capacity is reserved for a blocked gang.
func (r *report) hold(path string, args *HoldArgs, out *Hold) {
	for _, one := range []struct {
		name string
		said *metav1.Duration
		into *time.Duration
	}{{"after", args.After, &out.After}, {"for", args.For, &out.For}} {
		switch {
		case one.said == nil:
		case (one.said.Duration < 0 || one.said.Duration > longestHold):
			r.add(path+"."+one.name, "must be at least 0s and at most %v, got %v", longestHold, one.said.Duration)
		default:
			*one.into = one.said.Duration
		}
	}
	switch {
	case args.Backfill == nil:
	case *args.Backfill == On, *args.Backfill == Off:
		out.Backfill = *args.Backfill
	default:
		r.add(path+".backfill", "must be On or Off, got %q", *args.Backfill)
	}
	out.EvictableClasses = args.EvictablePriorityClasses
	for i, name := range args.EvictablePriorityClasses {
		at := fmt.Sprintf("%s.evictablePriorityClasses[%d]", path, i)
		switch {
		case strings.HasPrefix(name, "system-"):
			r.add(at, "pods of the cluster itself are not evicted for gangs, got %q", name)
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			r.add(at, "must be the name of a PriorityClass, got %q", name)
		}
	}
}

// scaleUp resolves how long a blocked gang requests nodes.
func (r *report) scaleUp(path string, args *ScaleUpArgs, out *ScaleUp) {
	for _, one := range []struct {
		name  string
		said  *metav1.Duration
		least time.Duration
		into  *time.Duration
	}{{"for", args.For, 0, &out.For}, {"pause", args.Pause, time.Second, &out.Pause}} {
		switch {
		case one.said == nil:
		case one.said.Duration < one.least || one.said.Duration > longestHold:
			r.add(path+"."+one.name, "must be at least %v and at most %v, got %v", one.least, longestHold,
				one.said.Duration)
		default:
			*one.into = one.said.Duration
		}
	}
}

// String is how Gangs is written in a file, on one line.
func (g Gangs) String() string {
	text := fmt.Sprintf("podgroup: %s, annotation: %s, sigs: %s, volcano: %s", g.PodGroup, g.Annotation, g.Sigs,
		g.Volcano)
	if g.Pfnet != "" {
		text += fmt.Sprintf(", pfnet: {prefix: %s}", g.Pfnet)
	}
	text += g.Hold.text()
	if g.ScaleUp != DefaultGangs().ScaleUp {
		text += fmt.Sprintf(", scaleUp: {for: %s, pause: %s}", g.ScaleUp.For, g.ScaleUp.Pause)
	}
	return "{" + text + "}"
}

// text is what String says of h, nothing for the default.
func (h Hold) text() string {
	if reflect.DeepEqual(h, DefaultGangs().Hold) {
		return ""
	}
	classes := ""
	if len(h.EvictableClasses) > 0 {
		classes = fmt.Sprintf(", evictablePriorityClasses: [%s]", strings.Join(h.EvictableClasses, ", "))
	}
	return fmt.Sprintf(", hold: {after: %s, for: %s, backfill: %s%s}", h.After, h.For, h.Backfill, classes)
}

func (g Gangs) wire() *GangsArgs {
	out := &GangsArgs{PodGroup: &g.PodGroup, Annotation: &g.Annotation, Sigs: &g.Sigs, Volcano: &g.Volcano,
		Hold: &HoldArgs{&metav1.Duration{Duration: g.Hold.After}, &metav1.Duration{Duration: g.Hold.For},
			&g.Hold.Backfill, g.Hold.EvictableClasses},
		ScaleUp: &ScaleUpArgs{&metav1.Duration{Duration: g.ScaleUp.For}, &metav1.Duration{Duration: g.ScaleUp.Pause}}}
	if g.Pfnet != "" {
		out.Pfnet = &PfnetArgs{&g.Pfnet}
	}
	return out
}
