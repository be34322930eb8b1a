package dynamo

// kindNames are the names that the wire uses, by Kind.
var kindNames = [...]string{
	KindNull: "NULL", KindBool: "BOOL", KindString: "S", KindNumber: "N", KindBinary: "B",
	KindList: "L", KindMap: "M", KindSS: "SS", KindNS: "NS", KindBS: "BS",
}

// String gives the wire's name of the kind: "S", "N", "BOOL", …; "?" for what is no kind.
func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return "?"
}

func (k Kind) valid() bool { return k >= KindNull && k <= KindBS }

// IsSet reports whether the kind is SS, NS or BS.
func (k Kind) IsSet() bool { return k >= KindSS && k <= KindBS }

// Element is the kind of a set's elements: S, N or B; 0 where k is no set.
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

// Set is the kind of a set whose elements have kind k: SS, NS or BS; 0 where there is none.
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

// KindOf gives the kind that the wire calls name; 0 where there is none.
func KindOf(name string) Kind {
	for k, n := range kindNames {
		if n == name && k != 0 {
			return Kind(k)
		}
	}
	return 0
}
