// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// setObject records an object and wakes the pods that its arrival or change may help.
func (e *Engine) setObject(obj cluster.Object) {
	old := e.store.SetObject(obj)
	action := plugin.Update
	if old == nil {
		action = plugin.Add
	}
	e.objectHappened(cluster.KindOf(obj), action, old, obj)
	if g, is := obj.(*cluster.Gang); is {
		was, _ := old.(*cluster.Gang)
		e.setGang(g)
		e.protectionChanged(g.Key, was, g)
	}
	e.evictions.ObjectChanged(old, obj)
	e.binds.askAgain(e.binds.allWaiting())
}

func (e *Engine) deleteObject(kind cluster.Kind, key cluster.ObjectKey) {
	if old := e.store.DeleteObject(kind, key); old != nil {
		e.objectHappened(kind, plugin.Delete, old, nil)
		e.evictions.ObjectChanged(old, nil)
		if g, is := old.(*cluster.Gang); is {
			e.regroupGang(g.Key)
			e.reconsider(g.Key, "its pod group is gone")
			e.protectionChanged(g.Key, g, nil)
			e.forgetGang(g.Key)
		}
	}
	e.binds.askAgain(e.binds.allWaiting())
}
