// SPDX-License-Identifier: Apache-2.0

package question

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// apply makes conditions true in the order given, and returns what each did. It stops at the first that names
// something that does not exist.
func (w *supposition) apply(list []condition) (done []record.Supposed, no *record.Refusal) {
	for k := range list {
		one := record.Supposed{If: list[k].String()}
		if why := w.applyOne(&list[k], &one); why != "" {
			return done, &record.Refusal{Missing: true, Message: fmt.Sprintf("condition %q: %s", one.If, why)}
		}
		done = append(done, one)
	}
	return done, nil
}

// applyOne makes one condition true and completes what it did; missing is what it names and does not exist.
func (w *supposition) applyOne(c *condition, done *record.Supposed) (missing string) {
	switch c.kind {
	case "pod":
		return w.deletePod(c, done)
	case "gang":
		return w.deleteGang(c, done)
	}
	return w.changeNode(c, done)
}

func (w *supposition) deletePod(c *condition, done *record.Supposed) (missing string) {
	named := func(p *cluster.Pod) bool { return p.Namespace == c.namespace && p.Name == c.name }
	if slices.ContainsFunc(w.displaced, named) {
		done.Does = "it was supposed gone already"
		return ""
	}
	p := w.findPod(c.namespace, c.name)
	s := w.view.Snapshot()
	if p == nil {
		return fmt.Sprintf("there is no pod %s/%s that waits or holds room", c.namespace, c.name)
	}
	on, n, _, holds := s.PodOn(p.UID)
	switch {
	case w.deleted[p.UID]:
		done.Does = "it was supposed gone already"
	case !holds:
		w.deleted[p.UID] = true
		done.Does = "it waits no more; it holds no room"
		if node := w.view.Queue().NominationOf(p.UID); node != "" {
			done.Does = "it waits; the room that is kept for it on " + node + " is free"
		}
	case on.OfNode:
		done.Stay = 1
		done.Does = "it belongs to node " + s.NodeName(n) + " and comes back there: nothing changes"
	default:
		done.Leave = 1
		lost := 0
		if !on.Owned {
			lost = 1
		}
		done.Does = "it leaves " + s.NodeName(n) + createdAgain(1, lost)
		w.displace(on)
	}
	return ""
}

func (w *supposition) deleteGang(c *condition, done *record.Supposed) (missing string) {
	key, ok := w.findGang(c.namespace, c.name)
	if !ok {
		return fmt.Sprintf("there is no gang %s/%s: no pod of this scheduler's, and no pod group, names it",
			c.namespace, c.name)
	}
	waiting := 0
	if u := w.view.Queue().Gang(key); u != nil {
		for _, p := range u.Members {
			w.deleted[p.UID] = true
			waiting++
		}
	}
	lost, nodes := 0, map[cluster.NodeIdx]bool{}
	for _, m := range w.view.Snapshot().GangMembers(key) {
		if m.Pod.OfNode {
			done.Stay++
			continue
		}
		done.Leave++
		if !m.Pod.Owned {
			lost++
		}
		nodes[m.Row] = true
		w.displace(m.Pod)
	}
	done.Does = "none of its pods holds room"
	if done.Leave > 0 {
		done.Does = fmt.Sprintf("%s %s", podsWith(done.Leave, "leaves", "leave"), counted(len(nodes), "node"))
		if lost > 0 {
			done.Does += createdAgain(done.Leave, lost)
		}
	}
	if waiting > 0 {
		done.Does += fmt.Sprintf("; %s no more", podsWith(waiting, "waits", "wait"))
	}
	return ""
}

func (w *supposition) changeNode(c *condition, done *record.Supposed) (missing string) {
	s := w.view.Snapshot()
	n, ok := s.Find(c.name)
	if !ok {
		return "there is no node " + c.name
	}
	node := *s.Node(n)
	switch c.verb {
	case "drain":
		w.drain(n, done)
		node.Unschedulable = true
		w.cluster.SetNode(&node)
		done.Does += "; the node takes no pods"
	case "delete":
		w.deleteNode(n, c.name, done)
	case "cordon":
		done.Does = "the node takes no pods"
		if node.Unschedulable {
			done.Does = "the node was cordoned already"
		}
		node.Unschedulable = true
		w.cluster.SetNode(&node)
	case "uncordon":
		done.Does = "the node takes pods"
		if !node.Unschedulable {
			done.Does = "the node was not cordoned"
		}
		node.Unschedulable = false
		cordoned := func(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable }
		node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), cordoned)
		w.cluster.SetNode(&node)
	default:
		w.addNodes(s, n, c.count, done)
	}
	return ""
}

// drain takes the pods off a node that do not belong to it.
func (w *supposition) drain(n cluster.NodeIdx, done *record.Supposed) {
	s := w.view.Snapshot()
	var leave []*cluster.Pod
	s.EachPod(n, func(p *cluster.Pod, _ bool) {
		if p.OfNode {
			done.Stay++
			return
		}
		leave = append(leave, p)
	})
	shielded := victim.CountProtected(s, byKey(leave))
	w.displaceAll(leave, done)
	if done.Stay > 0 {
		belong := verb(done.Stay, "belongs", "belong")
		done.Does += fmt.Sprintf(", %d %s to the node (DaemonSet, static)", done.Stay, belong)
	}
	if shielded > 0 {
		done.Does += fmt.Sprintf("; disruption budgets hold up %d of them", shielded)
	}
}

// deleteNode takes all pods off a node and deletes it. The pods that belong to it are lost with it.
func (w *supposition) deleteNode(n cluster.NodeIdx, name string, done *record.Supposed) {
	var leave []*cluster.Pod
	w.view.Snapshot().EachPod(n, func(p *cluster.Pod, _ bool) { leave = append(leave, p) })
	w.displaceAll(byKey(leave), done)
	w.displaced = slices.DeleteFunc(w.displaced, func(p *cluster.Pod) bool { return p.OfNode })
	w.cluster.DeleteNode(name)
	done.Does = "the node is gone; " + done.Does
}

// displaceAll takes pods off their node, and completes how many they are and how many of them are lost.
func (w *supposition) displaceAll(leave []*cluster.Pod, done *record.Supposed) {
	lost := 0
	for _, p := range leave {
		if !p.Owned && !p.OfNode {
			lost++
		}
		w.displace(p)
	}
	done.Leave = len(leave)
	done.Does = podsWith(len(leave), "leaves", "leave")
	if lost > 0 {
		done.Does += createdAgain(len(leave), lost)
	}
}

// byKey sorts pods by namespace and name, and by UID among equals.
func byKey(pods []*cluster.Pod) []*cluster.Pod {
	slices.SortFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

// addedNodesNamed is how many added nodes are named in an answer.
const addedNodesNamed = 3

// addNodes adds nodes that are like one: with its labels but for the host name, its taints but for those of its
// condition, what it offers, what its volume drivers can attach, and the pods that belong to a node.
func (w *supposition) addNodes(s cluster.Snapshot, like cluster.NodeIdx, count int, done *record.Supposed) {
	model := s.Node(like)
	var own []*cluster.Pod
	s.EachPod(like, func(p *cluster.Pod, _ bool) {
		if p.OfNode && !p.Terminating {
			own = append(own, p)
		}
	})
	csi, hasCSI := cluster.FindAPI[*storagev1.CSINode](s, "", model.Name)
	for range count {
		node := w.nodeLike(s, model)
		w.cluster.SetNode(node)
		if hasCSI {
			drivers := *csi
			drivers.Name, drivers.UID, drivers.ResourceVersion = node.Name, "", ""
			w.cluster.SetObject(&drivers)
		}
		for _, p := range own {
			copied := *p
			copied.UID = cluster.UID(node.Name + "/" + string(p.UID))
			copied.Name, copied.NodeName = p.Name+"-"+node.Name, node.Name
			w.cluster.SetPod(&copied)
		}
		if len(done.Nodes) < addedNodesNamed {
			done.Nodes = append(done.Nodes, node.Name)
		}
	}
	done.Added = count
	done.Does = strings.Join(done.Nodes, ", ")
	if more := count - len(done.Nodes); more > 0 {
		done.Does += fmt.Sprintf(" and %d more", more)
	}
	if len(own) > 0 {
		belong := verb(len(own), "belongs", "belong")
		done.Does += fmt.Sprintf(", with %s that %s to a node (DaemonSet, static)", counted(len(own), "pod"), belong)
	}
	cluster.Each(s, func(slice *resourceapi.ResourceSlice) bool {
		if has := slice.Spec.NodeName != nil && *slice.Spec.NodeName == model.Name; has {
			w.note("the added nodes have no devices of drivers: those of " + model.Name + " are not copied")
			return false
		}
		return true
	})
}

// nodeLike returns a new schedulable node like a model, in good condition and without images.
func (w *supposition) nodeLike(s cluster.Snapshot, model *cluster.Node) *cluster.Node {
	node := *model
	for taken := true; taken; {
		w.added[model.Name]++
		node.Name = fmt.Sprintf("%s-if-%d", model.Name, w.added[model.Name])
		_, taken = s.Find(node.Name)
	}
	node.UID, node.Unschedulable, node.Images = node.Name, false, nil
	node.Labels = make(map[string]string, len(model.Labels))
	for k, v := range model.Labels { // order: a map is made of a map
		node.Labels[k] = v
	}
	if _, has := node.Labels[v1.LabelHostname]; has {
		node.Labels[v1.LabelHostname] = node.Name
	}
	condition := func(t v1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") }
	node.Taints = slices.DeleteFunc(slices.Clone(model.Taints), condition)
	return &node
}

// createdAgain says that pods are created again, or how many are not.
func createdAgain(pods, lost int) string {
	switch {
	case lost == 0:
		return ", and comes again: it has a controller"
	case pods == 1:
		return " for good: it has no controller"
	}
	return fmt.Sprintf(", %d of them for good: they have no controller", lost)
}

// podsWith is a number of pods with its verb.
func podsWith(n int, one, many string) string {
	switch n {
	case 0:
		return "no pod " + one
	case 1:
		return "1 pod " + one
	}
	return fmt.Sprintf("%d pods %s", n, many)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
