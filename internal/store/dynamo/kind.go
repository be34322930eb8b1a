package dynamo

// kindNames are the kinds' names on the wire.
var kindNames = [...]string{
	KindNull: "NULL", KindBool: "BOOL", KindString: "S", KindNumber: "N", KindBinary: "B",
	KindList: "L", KindMap: "M", KindSS: "SS", KindNS: "NS", KindBS: "BS",
}

// String returns the kind's name on the wire: "S", "N", "BOOL", …; "?" for an invalid kind.
func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return "?"
}

func (k Kind) valid() bool { return k >= KindNull && k <= KindBS }

// IsSet reports whether the kind is SS, NS or BS.
func (k Kind) IsSet() bool { return k >= KindSS && k <= KindBS }

// Element returns the kind of a set's elements: S, N or B, or 0 if k is no set.
func (k Kind) Element() Kind {
	switch k {
	case KindSS:
		return KindString
	case KindNS:
		return KindNumber
	case KindBS:
		return KindBinary
	}
	return 0
}

// KindOf returns the kind with this name on the wire, or 0.
func KindOf(name string) Kind { return kindOf([]byte(name)) }
