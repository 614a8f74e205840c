// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strconv"
	"strings"

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
		case "phase":
			g.Phase = value
		case "scheduled":
			g.Condition = cluster.GangCondition{Scheduled: true}
		case "source":
			g.Key.Source = cluster.GangSource(value)
		case "rack":
			g.Topology = []cluster.GangTopology{{Key: "rack", Required: true}}
		case "deleting":
			g.DeletionTimestamp = &metav1.Time{}
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
