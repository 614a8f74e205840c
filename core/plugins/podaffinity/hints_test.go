// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// Which changes of pods wake a pod. Mutants: pod-affinity-hint-pending, pod-affinity-hint-any-term,
// pod-affinity-hint-any-delete, pod-affinity-hint-one-way, pod-affinity-hint-matched, pod-affinity-hint-broken.
func TestPodAffinityHintsOnPods(t *testing.T) {
	in := convert.NewIntake()
	web, red := podsBy("zone", "app", "web"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	broken := podsWhere("zone", "app", "Like")
	bound := func(options ...plugintest.PodOption) *v1.Pod {
		return plugintest.Pod("other", append(options, plugintest.OnNode("n"))...)
	}
	plain := plugintest.Pod("p")
	for name, c := range map[string]struct {
		pod     *v1.Pod
		was, is *v1.Pod
		want    plugin.Hint
	}{
		"a pod it wants near comes":                   {plugintest.Pod("p", wantsNear(web)), nil, bound(wears("app", "web")), plugin.QueueHint},
		"another pod comes":                           {plugintest.Pod("p", wantsNear(web)), nil, bound(wears("app", "db")), plugin.SkipHint},
		"one for each of two terms":                   {plugintest.Pod("p", wantsNear(web, podsBy("zone", "tier", "front"))), nil, bound(wears("app", "web")), plugin.SkipHint},
		"one for both terms":                          {plugintest.Pod("p", wantsNear(web, podsBy("zone", "tier", "front"))), nil, bound(wears("app", "web", "tier", "front")), plugin.QueueHint},
		"it waits itself":                             {plugintest.Pod("p", wantsNear(web)), nil, plugintest.Pod("other", wears("app", "web")), plugin.SkipHint},
		"it is nominated":                             {plugintest.Pod("p", wantsNear(web)), nil, plugintest.Pod("other", wears("app", "web"), plugintest.Nominated("n")), plugin.QueueHint},
		"one of another namespace":                    {plugintest.Pod("p", wantsNear(web)), nil, bound(plugintest.InNamespace("other"), wears("app", "web")), plugin.SkipHint},
		"one of a namespace named":                    {plugintest.Pod("p", wantsNear(ofSpaces(web, "other"))), nil, bound(plugintest.InNamespace("other"), wears("app", "web")), plugin.QueueHint},
		"one of a namespace selected":                 {plugintest.Pod("p", wantsNear(ofSpacesWith(web, red))), nil, bound(plugintest.InNamespace("other"), wears("app", "web")), plugin.SkipHint},
		"one of any namespace":                        {plugintest.Pod("p", wantsNear(ofSpacesWith(web, &metav1.LabelSelector{}))), nil, bound(plugintest.InNamespace("other"), wears("app", "web")), plugin.QueueHint},
		"a pod it wants far comes":                    {plugintest.Pod("p", wantsFar(web)), nil, bound(wears("app", "web")), plugin.SkipHint},
		"a pod it likes near comes":                   {plugintest.Pod("p", likesNear(1, web)), nil, bound(wears("app", "web")), plugin.SkipHint},
		"a pod it wants near goes":                    {plugintest.Pod("p", wantsNear(web)), bound(wears("app", "web")), nil, plugin.SkipHint},
		"a pod it wants far goes":                     {plugintest.Pod("p", wantsFar(web)), bound(wears("app", "web")), nil, plugin.QueueHint},
		"one of two it wants far goes":                {plugintest.Pod("p", wantsFar(web, podsBy("zone", "app", "db"))), bound(wears("app", "web")), nil, plugin.QueueHint},
		"it waited itself":                            {plugintest.Pod("p", wantsFar(web)), plugintest.Pod("other", wears("app", "web")), nil, plugin.SkipHint},
		"a pod that wants it far goes":                {plain, bound(wantsFar(podsBy("zone"))), nil, plugin.QueueHint},
		"a pod that wants it and others far":          {plain, bound(wantsFar(podsBy("zone"), web)), nil, plugin.QueueHint},
		"a pod that wants others far":                 {plain, bound(wantsFar(web)), nil, plugin.SkipHint},
		"a pod with broken terms goes":                {plain, bound(wantsFar(broken)), nil, plugin.QueueHint},
		"a pod with broken affinity goes":             {plain, bound(wantsNear(broken)), nil, plugin.SkipHint},
		"a pod comes to match":                        {plugintest.Pod("p", wantsNear(web)), bound(), bound(wears("app", "web")), plugin.QueueHint},
		"a pod matched before":                        {plugintest.Pod("p", wantsNear(web)), bound(wears("app", "web")), bound(wears("app", "web", "x", "y")), plugin.SkipHint},
		"a pod matches no more":                       {plugintest.Pod("p", wantsNear(web)), bound(wears("app", "web")), bound(), plugin.SkipHint},
		"a pod is far no more":                        {plugintest.Pod("p", wantsFar(web)), bound(), bound(wears("app", "web")), plugin.SkipHint},
		"a pod need not be far":                       {plugintest.Pod("p", wantsFar(web)), bound(wears("app", "web")), bound(), plugin.QueueHint},
		"a pod of no interest is relabelled":          {plugintest.Pod("p", wantsFar(web), wantsNear(web)), bound(), bound(wears("x", "y")), plugin.SkipHint},
		"a pod that waits is relabelled":              {plugintest.Pod("p", wantsFar(web)), plugintest.Pod("other", wears("app", "web")), plugintest.Pod("other"), plugin.SkipHint},
		"its own labels":                              {plain, plain, plugintest.Pod("p", wears("x", "y")), plugin.QueueHint},
		"its own terms are broken":                    {plugintest.Pod("p", wantsFar(broken)), nil, bound(), plugin.QueueHint},
		"its own preferences are broken":              {plugintest.Pod("p", likesFar(1, broken)), nil, bound(), plugin.SkipHint},
		"its own terms are broken, the other waits":   {plugintest.Pod("p", wantsFar(broken)), nil, plugintest.Pod("other"), plugin.SkipHint},
		"no terms, a pod comes":                       {plain, nil, bound(wears("app", "web")), plugin.SkipHint},
		"no terms, a pod with anti-affinity is there": {plain, nil, bound(wantsFar(web)), plugin.SkipHint},
	} {
		ch := plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}}
		if c.was != nil {
			ch.OldPod, ch.Event.Action = in.Pod(c.was), plugin.Delete
		}
		if c.is != nil {
			ch.NewPod = in.Pod(c.is)
		}
		if c.was != nil && c.is != nil {
			ch.Event.Action = plugin.UpdatePodLabel
			if c.is.Name == c.pod.Name {
				ch.Event.Resource = plugin.TargetPod
			}
		}
		if got, asked := plugintest.HintOf(interPod(), in.PendingPod(c.pod), ch); got != c.want || !asked {
			t.Errorf("%s: hint %v, asked %v; want %v", name, got, asked, c.want)
		}
	}
}

// Which changes of nodes wake a pod. Mutants: pod-affinity-hint-any-node, pod-affinity-hint-lost,
// pod-affinity-hint-gained.
func TestPodAffinityHintsOnNodes(t *testing.T) {
	in := convert.NewIntake()
	near, far := plugintest.Pod("p", wantsNear(podsBy("zone", "app", "web"))), plugintest.Pod("p", wantsFar(podsBy("zone", "app", "web")))
	for name, c := range map[string]struct {
		pod     *v1.Pod
		was, is *v1.Node
		want    plugin.Hint
	}{
		"near, a node with the key":           {near, nil, plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.QueueHint},
		"near, a node without it":             {near, nil, plugintest.Node("n", plugintest.Labels("host", "n")), plugin.SkipHint},
		"near, a node gets the key":           {near, plugintest.Node("n"), plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.QueueHint},
		"near, a node loses the key":          {near, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n"), plugin.SkipHint},
		"near, a node moves":                  {near, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n", plugintest.Labels("zone", "b")), plugin.QueueHint},
		"near, another label":                 {near, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n", plugintest.Labels("zone", "a", "x", "y")), plugin.SkipHint},
		"far, a node with the key":            {far, nil, plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.QueueHint},
		"far, a node without it":              {far, nil, plugintest.Node("n"), plugin.QueueHint},
		"far, a node gets the key":            {far, plugintest.Node("n"), plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.SkipHint},
		"far, a node loses the key":           {far, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n"), plugin.QueueHint},
		"far, a node moves":                   {far, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n", plugintest.Labels("zone", "b")), plugin.QueueHint},
		"far, another label":                  {far, plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n", plugintest.Labels("zone", "a", "x", "y")), plugin.SkipHint},
		"no terms":                            {plugintest.Pod("p"), nil, plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.SkipHint},
		"preferences":                         {plugintest.Pod("p", likesNear(1, podsBy("zone"))), nil, plugintest.Node("n", plugintest.Labels("zone", "a")), plugin.SkipHint},
		"two terms, a node with one key":      {plugintest.Pod("p", wantsNear(podsBy("zone"), podsBy("host"))), nil, plugintest.Node("n", plugintest.Labels("host", "n")), plugin.QueueHint},
		"terms that cannot be read":           {plugintest.Pod("p", wantsNear(podsWhere("zone", "app", "Like"))), plugintest.Node("n"), plugintest.Node("n", plugintest.Labels("x", "y")), plugin.QueueHint},
		"anti-affinity that cannot be read":   {plugintest.Pod("p", wantsFar(podsWhere("zone", "app", "Like"))), plugintest.Node("n"), plugintest.Node("n", plugintest.Labels("x", "y")), plugin.QueueHint},
		"preferences that cannot be read too": {plugintest.Pod("p", likesFar(1, podsWhere("zone", "app", "Like"))), plugintest.Node("n"), plugintest.Node("n", plugintest.Labels("x", "y")), plugin.SkipHint},
	} {
		ch := plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: in.Node(c.is)}
		if c.was != nil {
			ch.OldNode, ch.Event.Action = in.Node(c.was), plugin.UpdateNodeLabel
		}
		if got, asked := plugintest.HintOf(interPod(), in.PendingPod(c.pod), ch); got != c.want || !asked {
			t.Errorf("%s: hint %v, asked %v; want %v", name, got, asked, c.want)
		}
	}
}

// Other events do not wake: taints and allocatable of nodes, tolerations and scale-downs of pods, gates.
func TestPodAffinityRegistersForNoOther(t *testing.T) {
	in := convert.NewIntake()
	p := in.PendingPod(plugintest.Pod("p", wantsFar(podsBy("zone"))))
	for _, e := range []plugin.Event{{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, {Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable},
		{Resource: plugin.NodeObject, Action: plugin.Delete}, {Resource: plugin.AssignedPod, Action: plugin.UpdatePodScaleDown},
		{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration}, {Resource: plugin.UnscheduledPod, Action: plugin.UpdatePodLabel}, {Resource: plugin.VolumeObject, Action: plugin.Add}} {
		if _, asked := plugintest.HintOf(interPod(), p, plugin.Change{Event: e}); asked {
			t.Errorf("%s wakes", e)
		}
	}
}

// No hint that is registered as Alike reads more than namespace and Spec.
func TestPodAffinityAlikeHints(t *testing.T) {
	plugintest.CheckAlikeHints(t, func(t *rapid.T, name string) *v1.Pod { return randomSocial(t, name, 60) }, interPod())
}
