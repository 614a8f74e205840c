// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// APIObject is an API object other than a pod or node.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// Object is an API object in a file: it is written with its kind and version.
type Object struct{ APIObject }

// Key names the object among all others of a cluster.
func (o Object) Key() ObjectRef {
	return ObjectRef{Kind: KindOf(o.APIObject), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// ObjectRef names an object.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// KindOf is the kind of a typed API object.
func KindOf(o runtime.Object) string {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil || len(kinds) == 0 {
		panic(fmt.Sprintf("object of type %T: %v", o, err))
	}
	return kinds[0].Kind
}

// MarshalJSON adds the kind.
func (o Object) MarshalJSON() ([]byte, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o.APIObject)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(o.APIObject)
	if err != nil {
		return nil, err
	}
	var fields map[string]any // field -> value
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = kinds[0].GroupVersion().String(), kinds[0].Kind
	return json.Marshal(fields)
}

// UnmarshalJSON makes an object of the kind that the text names.
func (o *Object) UnmarshalJSON(data []byte) error {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return err
	}
	obj, ok := decoded.(APIObject)
	if !ok {
		return fmt.Errorf("a %T is no object of a cluster", decoded)
	}
	o.APIObject = obj
	return nil
}
