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

// Set returns the kind of a set with elements of kind k: SS, NS or BS, or 0 if there is none.
func (k Kind) Set() Kind {
	switch k {
	case KindString:
		return KindSS
	case KindNumber:
		return KindNS
	case KindBinary:
		return KindBS
	}
	return 0
}

// KindOf returns the kind with this name on the wire, or 0.
func KindOf(name string) Kind {
	for k, n := range kindNames {
		if n == name && k != 0 {
			return Kind(k)
		}
	}
	return 0
}
