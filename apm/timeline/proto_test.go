// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

//go:embed perfetto.proto
var subset string

var (
	comments = regexp.MustCompile(`//[^\n]*`)
	words    = regexp.MustCompile(`"[^"]*"|[A-Za-z_][\w.]*|\d+|[{}=;]`)
	scalars  = map[string]descriptorpb.FieldDescriptorProto_Type{
		"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64, "uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
		"int32": descriptorpb.FieldDescriptorProto_TYPE_INT32, "string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
		"bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	}
)

// parser reads the subset of the language that perfetto.proto uses: messages, enumerations and fields.
type parser struct {
	t    *testing.T
	left []string
}

func (p *parser) next() string {
	p.t.Helper()
	if len(p.left) == 0 {
		p.t.Fatal("perfetto.proto ends too early")
	}
	word := p.left[0]
	p.left = p.left[1:]
	return word
}

func (p *parser) want(word string) {
	p.t.Helper()
	if got := p.next(); got != word {
		p.t.Fatalf("perfetto.proto has %q before %v, want %q", got, p.left[:min(5, len(p.left))], word)
	}
}

func (p *parser) number() *int32 {
	p.t.Helper()
	n, err := strconv.ParseInt(p.next(), 10, 32)
	if err != nil {
		p.t.Fatal(err)
	}
	return proto.Int32(int32(n))
}

func (p *parser) message() *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: proto.String(p.next())}
	p.want("{")
	for {
		switch word := p.next(); word {
		case "}":
			return m
		case "enum":
			m.EnumType = append(m.EnumType, p.enum())
		case "optional", "repeated":
			m.Field = append(m.Field, p.field(word))
		default:
			p.t.Fatalf("perfetto.proto has %q in a message", word)
		}
	}
}

func (p *parser) enum() *descriptorpb.EnumDescriptorProto {
	e := &descriptorpb.EnumDescriptorProto{Name: proto.String(p.next())}
	p.want("{")
	for {
		word := p.next()
		if word == "}" {
			return e
		}
		p.want("=")
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(word), Number: p.number()})
		p.want(";")
	}
}

func (p *parser) field(label string) *descriptorpb.FieldDescriptorProto {
	f := &descriptorpb.FieldDescriptorProto{Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if label == "repeated" {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	kind := p.next()
	if scalar, is := scalars[kind]; is {
		f.Type = scalar.Enum()
	} else {
		f.TypeName = proto.String(kind)
	}
	f.Name = proto.String(p.next())
	p.want("=")
	f.Number = p.number()
	p.want(";")
	return f
}

// traceDescriptor is the descriptor of the message Trace of perfetto.proto.
func traceDescriptor(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	p := &parser{t, words.FindAllString(comments.ReplaceAllString(subset, ""), -1)}
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("perfetto.proto")}
	for len(p.left) > 0 {
		switch word := p.next(); word {
		case "syntax":
			p.want("=")
			file.Syntax = proto.String(strings.Trim(p.next(), `"`))
			p.want(";")
		case "package":
			file.Package = proto.String(p.next())
			p.want(";")
		case "message":
			file.MessageType = append(file.MessageType, p.message())
		default:
			t.Fatalf("perfetto.proto has %q", word)
		}
	}
	// Types that are named without a package are resolved by protodesc if they are complete.
	for _, m := range file.MessageType {
		for _, f := range m.Field {
			if f.TypeName == nil {
				continue
			}
			full := ".perfetto.protos." + f.GetTypeName()
			f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
			for _, e := range m.EnumType {
				if e.GetName() == f.GetTypeName() {
					full = ".perfetto.protos." + m.GetName() + "." + f.GetTypeName()
					f.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
				}
			}
			f.TypeName = proto.String(full)
		}
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Messages().ByName("Trace")
}
