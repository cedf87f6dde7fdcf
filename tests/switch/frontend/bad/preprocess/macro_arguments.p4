#define PAIR(a, b) a b
const bit<8> x = PAIR(1);
#define GLUE(a) a ##
#definee TYPO
#error this machine cannot do it
