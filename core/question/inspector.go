// SPDX-License-Identifier: Apache-2.0

package question

import (
	"hash/fnv"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Inspector answers questions about one engine. It has no state of its own and may be made anew for each question.
type Inspector struct{ view engine.View }

// New returns an Inspector of the engine behind a view.
func New(view engine.View) Inspector { return Inspector{view} }

// findPod returns the newest pod of a name, of equally new ones that of the greatest UID: among those that wait,
// else among those that hold capacity. It returns nil for none.
func (i Inspector) findPod(namespace, name string) *cluster.Pod {
	var found *cluster.Pod
	consider := func(p *cluster.Pod) {
		if p.Namespace != namespace || p.Name != name {
			return
		}
		if found == nil || p.Created > found.Created || p.Created == found.Created && p.UID >= found.UID {
			found = p
		}
	}
	for p := range i.view.AllPending() { // the newest pod wins, by UID among equals
		consider(p)
	}
	if found != nil {
		return found
	}
	s := i.view.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) { consider(p) })
	}
	return found
}

// gangSources are the ways to declare a gang, in the order in which a name is looked up.
var gangSources = []cluster.GangSource{
	cluster.GangOfGroup, cluster.GangOfAnnotation, cluster.GangOfSigs, cluster.GangOfVolcano, cluster.GangOfPfnet,
}

// findGang returns the gang of a name, by the first source that knows one.
func (i Inspector) findGang(namespace, name string) (key cluster.GangKey, ok bool) {
	for _, source := range gangSources {
		key := cluster.GangKey{Source: source, Namespace: namespace, Name: name}
		waits, declared := i.view.Queue().Gang(key) != nil, i.view.Snapshot().GangObject(key) != nil
		if waits || declared || i.view.Snapshot().GangHolds(key) > 0 {
			return key, true
		}
	}
	return cluster.GangKey{}, false
}

// draw returns a draw among tied nodes that is keyed by the subject of a question, so that the same question has
// the same answer.
func (i Inspector) draw(subject string) func(n int) int {
	h := fnv.New64a()
	h.Write([]byte(subject))
	return place.Draw(i.view.Config().Seed, h.Sum64())
}

// inGang reports whether a pod is scheduled with the others of a gang that is declared correctly.
func (i Inspector) inGang(p *cluster.Pod) bool {
	return p.Gang != nil && p.Gang.Bad == "" && !i.oneByOne(p.Gang.Key)
}

// oneByOne reports whether the pods of a group are scheduled one by one.
func (i Inspector) oneByOne(key cluster.GangKey) bool {
	obj := i.view.Snapshot().GangObject(key)
	return obj != nil && evict.OneByOne(obj)
}
