// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// gangWords takes the words of a pod that are about its gang out of args.
func gangWords(args []string) (rest []string, gang *cluster.GangMark, bound *cluster.BoundMark) {
	mark := cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default"}}
	rest = append(rest, args[0])
	for _, a := range args[1:] {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "gang":
			mark.Key.Name = value
		case "size":
			mark.Size, _ = strconv.Atoi(value)
		case "all":
			mark.Desired, _ = strconv.Atoi(value)
		case "timeout":
			n, _ := strconv.Atoi(value)
			mark.Timeout = record.Time(n) * record.Second
		case "source":
			mark.Key.Source = cluster.GangSource(value)
		case "bad":
			mark.Bad = strings.ReplaceAll(value, "_", " ")
		case "quorum":
			n, _ := strconv.Atoi(value)
			bound = &cluster.BoundMark{Quorum: n}
		default:
			rest = append(rest, a)
		}
	}
	if mark.Key.Name != "" {
		gang = &mark
	}
	return rest, gang, bound
}

// group is an object that declares a gang.
func group(args []string) *cluster.Gang {
	g := &cluster.Gang{Key: cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "default", Name: args[0]}}
	for _, a := range args[1:] {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "min":
			g.MinCount, _ = strconv.Atoi(value)
		case "basic":
			g.Basic = true
		case "priority":
			n, _ := strconv.Atoi(value)
			p := int32(n)
			g.Priority = &p
		case "bad":
			g.Bad = strings.ReplaceAll(value, "_", " ")
		case "timeout":
			n, _ := strconv.Atoi(value)
			g.Timeout = record.Time(n) * record.Second
		case "phase":
			g.Phase = value
		case "scheduled":
			g.Condition = cluster.GangCondition{Scheduled: true}
		case "source":
			g.Key.Source = cluster.GangSource(value)
		case "rack":
			g.Topology = []cluster.GangTopology{{Key: "rack", Required: true}}
		case "whole":
			g.EvictWhole = true
		case "never":
			g.NeverPreempts = true
		case "deleting":
			g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
	}
	at := g.Key.Object()
	g.Namespace, g.Name, g.UID = at.Namespace, at.Name, types.UID("group-"+args[0])
	return g
}

func names(pods []record.PodRef) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// checkListed: the list of gangs says of a gang what the report on it says.
func (s *story) checkListed(r record.GangReport) {
	list := inspect(s.engine).GangList()
	for _, e := range list.Gangs {
		if e.Name != r.Name || e.Source != r.Source {
			continue
		}
		want := record.GangEntry{Name: r.Name, Source: r.Source, Quorum: r.Quorum, Stated: r.Stated,
			OneByOne: r.OneByOne, Desired: r.Desired, Bound: r.Bound, Coming: r.Coming, Waiting: r.Waiting,
			Missing: r.Missing, Where: r.Where, Since: r.Since, Attempts: r.Attempts, BackoffUntil: r.BackoffUntil,
			Gate: r.Gate, Reason: r.Reason, PartialSince: r.PartialSince, Holds: r.Holds}
		want.Pod, want.Plugins, want.Priority = e.Pod, e.Plugins, e.Priority // the report has them in other places
		if !reflect.DeepEqual(e, want) {
			s.t.Errorf("the list has %+v, the report %+v", e, want)
		}
		return
	}
	s.t.Errorf("gang %s of %s is not in the list %+v", r.Name, r.Source, list.Gangs)
}

// whyGang prints what kumiki why tells of a gang. Asking twice must give the same.
func (s *story) whyGang(name string) {
	r, ok := inspect(s.engine).ExplainGang("default", name)
	if again, _ := inspect(s.engine).ExplainGang("default", name); fmt.Sprintf("%+v", again.Fit) != fmt.Sprintf("%+v", r.Fit) {
		s.t.Errorf("asked about gang %s twice: %+v and %+v", name, r.Fit, again.Fit)
	}
	if !ok {
		fmt.Fprintf(&s.out, "  no gang %s\n", name)
		return
	}
	s.checkListed(r)
	fmt.Fprintf(&s.out, "  %s %s: needs %d of %d (stated %v)%s, %d bound, %d coming, %d waiting, %d missing; %s %s%s\n", r.Source, r.Name, r.Quorum, r.Desired, r.Stated, sparedFor(r.SparedFor), r.Bound, r.Coming,
		r.Waiting, r.Missing, r.Where, r.Gate, r.Reason)
	if f := r.Fit; f != nil {
		fmt.Fprintf(&s.out, "  %s: %d of %d, blocked %s; %s; start %v\n", f.Verdict, f.Placed, f.Needed, f.Blocked, r.Basis, r.Estimate/record.Second)
	}
	for _, h := range []*record.GangHold{r.Holds, r.HeldByOther} {
		if h != nil {
			fmt.Fprintf(&s.out, "  held for %s: %d pods on %v until %d\n", h.Gang, h.Pods, h.Nodes, h.Until/record.Second)
		}
	}
	for _, p := range r.Pods {
		fmt.Fprintf(&s.out, "  %s %s on %q %s\n", p.Pod.Name, p.State, p.Node, p.Note)
	}
}

func sparedFor(gang string) string {
	if gang == "" {
		return ""
	}
	return ", leaves room to " + gang
}
