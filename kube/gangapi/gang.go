// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

// Meta is what is kept of the metadata of an object that declares a gang.
func Meta(source cluster.GangSource, obj metav1.Object) *cluster.Gang {
	g := &cluster.Gang{Key: cluster.GangKey{Source: source, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	g.ObjectMeta = metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: g.Key.Object().Name, UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
	}
	return g
}

// setMinCount takes how many pods a gang needs.
func setMinCount(g *cluster.Gang, field string, n int64) {
	switch {
	case n < 1:
		g.Bad = fmt.Sprintf("%s must be above 0, it is %d", field, n)
	case n > convert.MaxGangSize:
		g.Bad = fmt.Sprintf("%s must be at most %d, it is %d", field, convert.MaxGangSize, n)
	default:
		g.MinCount = int(n)
	}
}

// maxConditionMessage is how long the message of a condition may be, in bytes (upstream: metav1.Condition).
const maxConditionMessage = 32768

// CutMessage cuts the message of a condition to what the API takes.
func CutMessage(message string) string {
	if len(message) > maxConditionMessage {
		return message[:maxConditionMessage]
	}
	return message
}
