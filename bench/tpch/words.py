"""The words that TPC-H's values are made of."""

from __future__ import annotations

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4),
    ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2),
    ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
]  # fmt: skip
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
INSTRUCTIONS = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
TYPES = [
    f"{one} {two} {three}"
    for one in ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
    for two in ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
    for three in ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
]
CONTAINERS = [
    f"{one} {two}"
    for one in ("JUMBO", "LG", "MED", "SM", "WRAP")
    for two in ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
]
_COLOURS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood
burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim
dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew
hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium
metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru
pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky
slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow
"""
_COMMENT = """
accounts across after against along among asymptotes attainments blithely bold braids
carefully courts daring deposits dependencies dolphins dugouts engage epitaphs even excuses
express final fluffily foxes frays frets furiously gifts grouches haggle hockey idle ideas
instructions ironic multipliers nag notornis packages patterns pending pinto platelets
players quickly quiet realms regular requests sauternes sentiments sheaves silent sleep slow
slyly special theodolites thin tithes unusual waters wake warhorses warthogs
"""
COLOURS, COMMENT = _COLOURS.split(), _COMMENT.split()
