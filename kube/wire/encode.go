// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an API object with the methods that are generated for protobuf.
type object interface {
	runtime.Object
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

const protobuf = "application/vnd.kubernetes.protobuf"

// encoderFor returns the encoder of objects of a kind for a content type.
func encoderFor(
	contentType string, kind schema.GroupVersionKind, all runtime.ClientNegotiator,
) (func(object) ([]byte, error), error) {
	if contentType == protobuf {
		return newEnvelope(kind).encode, nil
	}
	encoder, err := all.Encoder(contentType, nil)
	if err != nil {
		return nil, fmt.Errorf("content type %q: %w", contentType, err)
	}
	return func(o object) ([]byte, error) { return runtime.Encode(encoder, o) }, nil
}

// envelope is what surrounds an object of one kind in protobuf (upstream: apimachinery, runtime/serializer/protobuf):
// four bytes that name the form, and a runtime.Unknown whose field Raw is the object.
type envelope struct {
	head []byte // ends with the tag of Raw; the length of the object follows
	tail []byte // the fields after Raw
}

func newEnvelope(kind schema.GroupVersionKind) envelope {
	apiVersion, name := kind.ToAPIVersionAndKind()
	meta := runtime.TypeMeta{APIVersion: apiVersion, Kind: name}
	whole, err := (&runtime.Unknown{TypeMeta: meta, Raw: []byte{}}).Marshal()
	const lengthAndTail = 5 // the length of Raw, 0, and two empty strings of two bytes each
	if err != nil || len(whole) <= lengthAndTail || whole[len(whole)-lengthAndTail] != 0 {
		panic(fmt.Sprintf("wire: an empty envelope of %v is %x (%v)", kind, whole, err))
	}
	at := len(whole) - lengthAndTail
	return envelope{head: append([]byte("k8s\x00"), whole[:at]...), tail: whole[at+1:]}
}

// encode returns an object in its envelope.
func (e envelope) encode(o object) ([]byte, error) {
	size := o.Size()
	var length [binary.MaxVarintLen64]byte
	digits := binary.PutUvarint(length[:], uint64(size))
	out := make([]byte, 0, len(e.head)+digits+size+len(e.tail))
	out = append(append(out, e.head...), length[:digits]...)
	from := len(out)
	out = out[:from+size]
	if n, err := o.MarshalToSizedBuffer(out[from:]); err != nil || n != size {
		return nil, fmt.Errorf("encoding a %T: %d of %d bytes: %v", o, n, size, err)
	}
	return append(out, e.tail...), nil
}
